// SPDX-License-Identifier: Apache-2.0
#include "lb/replay/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>
#include <utility>

#include "lib/base/digits.h"
#include "lib/base/printable.h"

namespace holdfast {
namespace {

constexpr unsigned kMostWorkers = 128;  // as in [dataplane]

std::string usage_message(const CLI::App* /*app*/, const CLI::Error& error) {
  return fmt::format("holdfast replay: {} (--help shows what there is)\n",
                     printable(error.what(), kMaxSentence));
}

/// CLI11 would take "-1" for a large number.
ReplayChange change_of(const std::string& index, const std::string& file) {
  const auto number = parse_decimal<std::uint64_t>(index);
  if (!number)
    throw CLI::ValidationError(
        "--apply-at",
        fmt::format("INDEX is the number of a packet, from 0, not {}", in_quotes(index)));
  return {*number, file};
}

}  // namespace

std::variant<ReplayOptions, ReplayNotice> parse_replay_options(int argc, const char* const* argv) {
  ReplayOptions options;
  unsigned workers = 0;
  std::vector<std::pair<std::string, std::string>> changes;
  CLI::App app(
      "Send the packets of a capture through the data path of a configuration, and write what the "
      "load balancer would send to another capture. Needs no daemon and no root.",
      "holdfast replay");
  app.add_option("CONFIG", options.config, "The configuration file; its seed is read, too")
      ->required()
      ->type_name("");
  app.add_option("IN", options.input, "The capture to replay: pcap or pcapng")
      ->required()
      ->type_name("");
  app.add_option("OUT", options.output, "Where what is sent goes: pcap, Ethernet")
      ->required()
      ->type_name("");
  app.add_flag("--json", options.json, "One JSON object with an entry for each packet");
  app.add_option("--workers", workers,
                 "Packets go to so many workers in turn; without it as many as in CONFIG")
      ->check(CLI::Range(1u, kMostWorkers))
      ->type_name("N");
  app.add_option("--drain", options.drained, "This backend drains from the start; may be repeated")
      ->allow_extra_args(false)
      ->type_name("POOL/BACKEND");
  app.add_option("--down", options.down,
                 "This backend has been down for longer than down_grace; may be repeated")
      ->allow_extra_args(false)
      ->type_name("POOL/BACKEND");
  app.add_option(
         "--apply-at", changes,
         "Before packet INDEX (from 0) the configuration FILE takes effect; may be repeated")
      ->allow_extra_args(false)
      ->type_name("INDEX FILE");
  app.footer(
      "Backends are taken for eligible, and those without next_hop for reachable.\n"
      "Exit codes: 0 done, 1 refused, 2 usage.\n"
      "Example: holdfast replay holdfast.toml in.pcap out.pcap --drain web/b1");
  app.failure_message(usage_message);
  try {
    app.parse(argc, argv);
    for (const auto& [index, file] : changes) options.changes.push_back(change_of(index, file));
  } catch (const CLI::ParseError& error) {
    std::ostringstream out;
    std::ostringstream errors;
    // Help is an "error" with code 0 in CLI11.
    if (app.exit(error, out, errors) == 0) return ReplayNotice{.text = out.str()};
    return ReplayNotice{.text = errors.str(), .is_error = true};
  }
  if (workers != 0) options.workers = workers;
  std::stable_sort(options.changes.begin(), options.changes.end(),
                   [](const auto& a, const auto& b) { return a.index < b.index; });
  return options;
}

}  // namespace holdfast

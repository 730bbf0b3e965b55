// SPDX-License-Identifier: Apache-2.0
#include "ctrl/command/check.h"

#include <fmt/format.h>

#include "ctrl/command/local_result.h"
#include "lib/base/printable.h"
#include "lib/base/read_file.h"
#include "lib/config/advice.h"
#include "lib/config/config.h"
#include "lib/config/seed_file.h"

namespace holdfast {
namespace {

Json fault(const std::string& file, std::uint32_t line, std::uint32_t column,
           const std::string& message, const std::string& text) {
  return {{"file", file}, {"line", line}, {"column", column}, {"message", message}, {"text", text}};
}

Json fault(const std::string& file, const Error& error) {
  return fault(file, 0, 0, error.message, error.text());
}

/// The seed is a secret in a file of its own, which may be readable only for the daemon, or be only
/// on the load balancer: that it can not be looked at from here is no fault.
void look_at_seed(const Config& config, const std::string& config_path, Json& faults, Json& notes) {
  const auto& path = config.dataplane.hash_seed_file;
  const auto seed = read_seed(path);
  if (seed) return;
  const auto& error = seed.error();
  if (error.code == "not_found" || error.code == "permission")
    notes.push_back(fmt::format("hash_seed_file was not checked: {}", error.text()));
  else
    faults.push_back(fault(path, with_seed_advice(error, config_path)));
}

LocalResult run(const Json& arguments) {
  const auto path = text_at(arguments, "file");
  Json faults = Json::array();
  Json notes = Json::array();
  Json result{{"file", path}, {"ok", false}};
  const auto text = read_file(path, kConfigFile);
  if (!text) {
    faults.push_back(fault(path, with_config_advice(text.error())));
  } else {
    const auto parsed = parse_config(*text, path);
    for (const auto& one : parsed.faults) {
      faults.push_back(fault(one.file, one.line, one.column, one.message, one.text()));
    }
    if (parsed.ok()) {
      look_at_seed(parsed.config, path, faults, notes);
      std::size_t backends = 0;
      for (const auto& pool : parsed.config.pools) backends += pool.backends.size();
      result["vips"] = parsed.config.vips.size();
      result["services"] = parsed.config.services.size();
      result["pools"] = parsed.config.pools.size();
      result["backends"] = backends;
    }
  }
  const bool ok = faults.empty();
  result["ok"] = ok;
  result["faults"] = std::move(faults);
  result["notes"] = std::move(notes);
  return {ok ? ExitCode::done : ExitCode::refused, std::move(result)};
}

std::string render(const Json& result) {
  std::string text;
  const auto& faults = list_at(result, "faults");
  for (const auto& one : faults) text += text_at(one, "text") + "\n";
  if (!flag_at(result, "ok")) {
    return text + fmt::format("{}: {} {}, this configuration would be refused\n",
                              printable_path(text_at(result, "file")), faults.size(),
                              faults.size() == 1 ? "fault" : "faults");
  }
  for (const auto& note : list_at(result, "notes")) {
    if (note.is_string()) text += "note: " + note.get<std::string>() + "\n";
  }
  return text + fmt::format("{}: good: VIPs {}, services {}, pools {}, backends {}\n",
                            printable_path(text_at(result, "file")), number_at(result, "vips"),
                            number_at(result, "services"), number_at(result, "pools"),
                            number_at(result, "backends"));
}

}  // namespace

Command check_command() {
  return {.name = "check",
          .summary = "Check a configuration file: every fault with its place; needs no daemon",
          .example = "holdfast check /etc/holdfast/holdfast.toml",
          .arguments = {{.kind = Argument::Kind::positional,
                         .name = "file",
                         .value = "FILE",
                         .help = "The TOML file"}},
          .run_here = run,
          .render = render};
}

}  // namespace holdfast

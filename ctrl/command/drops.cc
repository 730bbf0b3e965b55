// SPDX-License-Identifier: Apache-2.0
#include "ctrl/command/drops.h"

#include <fmt/format.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ctrl/command/common.h"
#include "ctrl/command/table.h"
#include "ctrl/control_plane.h"
#include "lib/base/digits.h"

namespace holdfast {
namespace {

constexpr std::size_t kBytesALine = 16;

/// "4500003c"
std::string hexadecimal(std::span<const std::uint8_t> bytes) {
  std::string text;
  for (const auto byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

/// What hexadecimal() wrote; what is no such text ends there.
std::vector<std::uint8_t> bytes_of(std::string_view text) {
  std::vector<std::uint8_t> bytes;
  for (; text.size() >= 2; text.remove_prefix(2)) {
    const auto byte = parse_hex<std::uint8_t>(text.substr(0, 2));
    if (!byte) break;
    bytes.push_back(*byte);
  }
  return bytes;
}

Json latest_json(const DropSample& sample) {
  return {{"worker", sample.worker},
          {"seconds_ago", seconds_since(sample.at)},
          {"length", sample.length},
          {"head", hexadecimal(std::span(sample.head).first(sample.kept()))}};
}

void run_drops(ControlPlane& control, const Json& arguments, const std::shared_ptr<Reply>& reply) {
  DropRates::Totals totals{};
  for (const auto& worker : control.stats().read_stats().workers) {
    for (std::size_t i = 0; i < totals.size(); ++i) totals[i] += worker.packets.dropped[i];
  }
  std::array<Json, kDropReasonCount> latest;
  for (const auto& sample : control.stats().read_drop_samples())
    latest.at(static_cast<std::size_t>(sample.reason)) = latest_json(sample);

  const bool all = flag_at(arguments, "all");
  Json reasons = Json::array();
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < totals.size(); ++i) {
    sum += totals[i];
    if (totals[i] == 0 && !all) continue;
    const auto reason = static_cast<DropReason>(i);
    reasons.push_back({{"reason", text_of(reason).name},
                       {"total", totals[i]},
                       {"per_second", control.drop_rates().rate(reason)},
                       {"meaning", text_of(reason).sentence},
                       {"latest", std::move(latest[i])}});
  }
  reply->result({{"total", sum},
                 {"rate_over_seconds", control.drop_rates().covered().count()},
                 {"reasons", std::move(reasons)}});
}

/// "  0010  00 28 00 00 40 00 40 06  b6 a7 c0 00 02 01 c0 00  |.(..@.@.........|"
std::string dump_line(std::span<const std::uint8_t> bytes, std::size_t offset) {
  std::string line = fmt::format("  {:04x} ", offset);
  std::string characters;
  for (std::size_t i = 0; i < kBytesALine; ++i) {
    if (i % (kBytesALine / 2) == 0 && i != 0) line += ' ';
    line += i < bytes.size() ? fmt::format(" {:02x}", bytes[i]) : "   ";
    if (i >= bytes.size()) continue;
    const bool shown = bytes[i] >= 0x20 && bytes[i] < 0x7f;
    characters += shown ? static_cast<char>(bytes[i]) : '.';
  }
  return line + fmt::format("  |{}|\n", characters);
}

std::string latest_text(const Json& row) {
  const auto latest = row.find("latest");
  if (latest == row.end() || !latest->is_object()) return {};
  const auto bytes = bytes_of(text_at(*latest, "head"));
  std::string text =
      fmt::format("\n{}: a frame of {} bytes, {} ago, worker {}\n", text_at(row, "reason"),
                  number_text(*latest, "length"), duration_text(real_at(*latest, "seconds_ago")),
                  number_text(*latest, "worker"));
  for (std::size_t at = 0; at < bytes.size(); at += kBytesALine) {
    const auto rest = std::span(bytes).subspan(at);
    text += dump_line(rest.first(std::min(rest.size(), kBytesALine)), at);
  }
  return text;
}

std::string render_drops(const Json& result) {
  const auto& reasons = list_at(result, "reasons");
  if (reasons.empty()) return "no packet was dropped\n";
  Table table({{"REASON"}, {"TOTAL", true}, {"PER SECOND", true}, {"MEANING"}});
  std::string latest;
  for (const auto& row : reasons) {
    table.add({text_at(row, "reason"), number_text(row, "total"),
               fmt::format("{:.1f}", real_at(row, "per_second")), text_at(row, "meaning")});
    latest += latest_text(row);
  }
  return table.text() +
         fmt::format("{} packets dropped in all; rates are over the last {}\n",
                     number_at(result, "total"),
                     duration_text(real_at(result, "rate_over_seconds"))) +
         latest;
}

}  // namespace

Command drops_command() {
  return {
      .name = "drops",
      .summary = "Show why packets were dropped: total, rate, meaning and latest of each reason",
      .example = "holdfast drops",
      .arguments = {{.kind = Argument::Kind::flag,
                     .name = "all",
                     .value = {},
                     .help = "Also the reasons that never happened"}},
      .run = run_drops,
      .render = render_drops};
}

}  // namespace holdfast

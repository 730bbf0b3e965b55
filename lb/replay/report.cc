// SPDX-License-Identifier: Apache-2.0
#include "lb/replay/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "lib/base/printable.h"
#include "lib/model/drop_reason.h"
#include "lib/protocol/json.h"

namespace holdfast {
namespace {

std::string_view verdict_name(Outcome outcome) {
  switch (outcome) {
    case Outcome::forward:
      return "forward";
    case Outcome::answer:
      return "answer";
    case Outcome::to_kernel:
      return "kernel";
    case Outcome::drop:
      return "drop";
    case Outcome::hold:  // none is left when the report is made
      return "held";
    case Outcome::undecided:
      break;
  }
  return "undecided";
}

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

/// Empty: none.
std::string backend_of(const LedgerEntry& entry, const OfflineControl& names) {
  if (entry.backend == kNoBackend) return {};
  const IpAddress address = names.backend_address(entry.backend);
  return address.is_unspecified() ? std::string{} : address.text();
}

std::string service_of(const LedgerEntry& entry, const OfflineControl& names) {
  return entry.service == kNoService ? std::string{} : names.service_name(entry.service);
}

std::string reason_of(const LedgerEntry& entry) {
  if (entry.verdict.outcome != Outcome::drop) return {};
  return std::string(text_of(entry.verdict.reason).name);
}

Json counters_json(const PacketCounters& counters) {
  Json json = Json::object();
  for (const auto& counter : kPacketCounters)
    json[std::string(counter.name)] = counters.*counter.value;
  Json dropped = Json::object();
  for (std::size_t i = 0; i < kDropReasonCount; ++i)
    if (counters.dropped[i] != 0)
      dropped[std::string(text_of(static_cast<DropReason>(i)).name)] = counters.dropped[i];
  json["dropped"] = std::move(dropped);
  return json;
}

}  // namespace

std::string replay_json(const Ledger& ledger, const PacketCounters& counters,
                        const OfflineControl& names) {
  // Entry by entry: one document of millions of them would take gigabytes.
  std::string text = R"({"packets":[)";
  for (std::size_t i = 0; i < ledger.size(); ++i) {
    const LedgerEntry& entry = ledger[i];
    const Json json{{"index", i},
                    {"verdict", verdict_name(entry.verdict.outcome)},
                    {"reason", text_or_null(reason_of(entry))},
                    {"service", text_or_null(service_of(entry, names))},
                    {"backend", text_or_null(backend_of(entry, names))},
                    {"outputs", entry.outputs}};
    text += (i == 0 ? "" : ",") + to_line(json);
  }
  return text + R"(],"counters":)" + to_line(counters_json(counters)) + "}\n";
}

std::string replay_text(const Ledger& ledger, const PacketCounters& counters,
                        const OfflineControl& names, const std::string& output) {
  const auto or_dash = [](std::string text) { return text.empty() ? std::string("-") : text; };
  constexpr std::string_view kRow = "{:>7}  {:8}{:26}{:17}{:25}{}\n";
  std::string text = fmt::format(kRow, "PACKET", "VERDICT", "REASON", "SERVICE", "BACKEND", "OUT");
  for (std::size_t i = 0; i < ledger.size(); ++i) {
    const LedgerEntry& entry = ledger[i];
    text += fmt::format(kRow, i, verdict_name(entry.verdict.outcome), or_dash(reason_of(entry)),
                        or_dash(service_of(entry, names)), or_dash(backend_of(entry, names)),
                        or_dash(fmt::format("{}", fmt::join(entry.outputs, ","))));
  }
  text +=
      fmt::format("\nreceived   {}\nforwarded  {}\nanswered   {}\nto kernel  {}\ndropped    {}\n",
                  counters.received, counters.forwarded, counters.answered, counters.to_kernel,
                  counters.dropped_sum());
  for (std::size_t i = 0; i < kDropReasonCount; ++i) {
    if (counters.dropped[i] == 0) continue;
    const DropReasonText& reason = text_of(static_cast<DropReason>(i));
    text += fmt::format("  {}  {}: {}\n", counters.dropped[i], reason.name, reason.sentence);
  }
  return text + fmt::format("sent       {}, to {}\n", counters.transmitted, printable_path(output));
}

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// Small things that several commands share.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>

#include "ctrl/loop/boot_clock.h"
#include "ctrl/reconcile/reconcile.h"
#include "lib/model/stats.h"
#include "lib/protocol/json.h"

namespace holdfast {

[[nodiscard]] inline double seconds_since(Instant then) {
  return std::chrono::duration<double>(boot_now() - then).count();
}

/// The counters of a number, or zeros when the data plane has none yet.
template <class Number>
[[nodiscard]] FlowCounters counters_of(const std::vector<FlowCounters>& all, Number number) {
  const auto i = index_of(number);
  return i < all.size() ? all[i] : FlowCounters{};
}

/// A gauge is kept by several workers; a reading may catch it below zero for a moment.
[[nodiscard]] inline std::uint64_t gauge(std::int64_t value) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(value, 0));
}

/// The flow counters as every command shows them.
inline void add_counters(Json& object, const FlowCounters& counters) {
  object["active_flows"] = gauge(counters.active);
  object["embryonic"] = gauge(counters.embryonic);
  object["closing"] = gauge(counters.closing);
  object["new_flows"] = counters.new_flows;
  object["packets"] = counters.packets;
  object["bytes"] = counters.bytes;
}

[[nodiscard]] inline std::string number_text(const Json& object, std::string_view key) {
  return fmt::format("{}", number_at(object, key));
}

/// The texts of a list, with spaces between.
[[nodiscard]] inline std::string joined(const Json& texts) {
  std::string result;
  for (const auto& text : texts)
    if (text.is_string()) result += (result.empty() ? "" : " ") + text.get<std::string>();
  return result;
}

/// Who gets a pool's new flows.
[[nodiscard]] constexpr std::string_view name_of(PoolPlacement placement) {
  switch (placement) {
    case PoolPlacement::eligible:
      return "eligible";
    case PoolPlacement::draining_only:
      return "draining";
    case PoolPlacement::none:
      return "none";
  }
  return "?";
}

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// Which flows an operator asks for, and how many there are of them. Pure; any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/model/flow_scan.h"

namespace holdfast {

/// What `--state` may name: one state, or all active flows.
enum class FlowStates : std::uint8_t { embryonic, established, proven, closing, active };

[[nodiscard]] std::string_view name_of(FlowRow::State state);
[[nodiscard]] std::optional<FlowStates> parse_flow_states(std::string_view text);

/// A flow must have all that is given.
struct FlowFilter {
  std::optional<ServiceNumber> service{};
  std::vector<BackendNumber> backends{};  // one of these; sorted; empty: any
  std::optional<FlowStates> states{};
  std::optional<std::chrono::milliseconds> idle_over{};  // silent for longer
  std::optional<std::chrono::milliseconds> age_over{};

  [[nodiscard]] bool matches(const FlowRow& row) const;
};

/// How many flows there are, each in one of these.
struct FlowTally {
  std::uint64_t active = 0;  // established or proven, and not silent
  std::uint64_t idle = 0;  // the same, but silent: the load balancer never sees a server's FIN, so
                           // many of these have probably ended
  std::uint64_t embryonic = 0;
  std::uint64_t closing = 0;

  [[nodiscard]] std::uint64_t sum() const { return active + idle + embryonic + closing; }
  FlowTally& operator+=(const FlowTally& other);
  friend bool operator==(const FlowTally&, const FlowTally&) = default;
};

/// Counts flows by service and backend.
class FlowCensus {
 public:
  struct Group {
    ServiceNumber service = kNoService;
    BackendNumber backend = kNoBackend;
    FlowTally flows{};
  };

  /// `silent`: after this without a packet an active flow counts as idle; nullopt: never.
  explicit FlowCensus(std::optional<std::chrono::milliseconds> silent) : silent_(silent) {}

  void add(const FlowRow& row);
  /// The `most` groups with the most flows, by service and backend.
  [[nodiscard]] std::vector<Group> largest(std::size_t most) const;
  [[nodiscard]] std::size_t groups() const { return groups_.size(); }
  [[nodiscard]] FlowTally total() const;

 private:
  std::optional<std::chrono::milliseconds> silent_;
  std::unordered_map<std::uint32_t, FlowTally> groups_{};  // service and backend, 16 bits each
};

}  // namespace holdfast

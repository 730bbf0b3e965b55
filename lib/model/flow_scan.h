// SPDX-License-Identifier: Apache-2.0
// What ctrl may see of all flows at once: the entries of the workers' flow tables, one by one, and
// where a walk through them stands. Values; lb/flow/flow_scan.h reads them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include "lib/model/numbers.h"

namespace holdfast {

/// One entry as another thread saw it. It holds no address. For information only, since the owner
/// may have been writing: then service, age and idle may be newer than the rest, or another flow's,
/// which took the place over.
struct FlowRow {
  enum class State : std::uint8_t { embryonic, established, proven, closing };

  std::uint64_t tag = 0;              // 42 bits of the flow's hash
  std::chrono::milliseconds age{0};   // since the first packet, in quarters of a second; at most
                                      // 145 days
  std::chrono::milliseconds idle{0};  // since the last one
  unsigned worker = 0;
  ServiceNumber service = kNoService;
  BackendNumber backend = kNoBackend;
  State state = State::embryonic;
  bool adopted = false;  // the flow is older than `age`: it began unseen, or at another worker
  bool stream = false;   // was established; closing ones too
  bool reset = false;    // closing, by a RST

  /// Counts as an active flow.
  [[nodiscard]] constexpr bool active() const {
    return state == State::established || state == State::proven;
  }
  friend bool operator==(const FlowRow&, const FlowRow&) = default;
};

/// Where a walk goes on: places are indices of entries, free ones too, in a table that never grows.
struct FlowPosition {
  unsigned worker = 0;
  std::uint64_t place = 0;

  friend auto operator<=>(const FlowPosition&, const FlowPosition&) = default;
};

/// Is shown one entry that is not free, one that expired in the last seconds and was not swept yet
/// included. False: enough for now.
using FlowVisitor = std::function<bool(const FlowRow&)>;

/// Reads the tables while their workers run, and disturbs none: nothing is locked or written.
class FlowScan {
 public:
  virtual ~FlowScan() = default;
  /// Looks at the next `places` places, free ones too, in the order of workers and places, and
  /// returns where to go on; nullopt: that was the last. A flow that its owner moves to another
  /// place or worker meanwhile may be met twice, or not at all. Any thread.
  [[nodiscard]] virtual std::optional<FlowPosition> read_flows(FlowPosition from,
                                                               std::uint64_t places,
                                                               const FlowVisitor& visit) const = 0;
};

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// The command that tells how long a service's streams last: flows durations
// (docs/decisions/stream-durations.md).
#pragma once

#include <cstdint>

#include "ctrl/command/command.h"
#include "lib/model/flow_query.h"

namespace holdfast {

[[nodiscard]] Command flows_durations_command();

/// All streams of one service: those that are over and those that are open. A value.
class StreamTally {
 public:
  StreamTally(ServiceNumber service, const StreamRecords& over);
  /// Takes the row if it is a stream of the service. One that is closing counts as ended: few come
  /// back from that. Of one that is open it is known that it lasted to its last packet.
  void add(const FlowRow& row);

  /// What the command answers about durations and numbers; `tcp`: there can be resets.
  [[nodiscard]] Json json(bool tcp) const;

 private:
  ServiceNumber service_;
  Lifetimes lifetimes_{};
  std::uint64_t open_ = 0;
  std::uint64_t lost_ = 0;  // not open, but how they went on nobody saw
  std::uint64_t excluded_ = 0;
  std::uint64_t reset_ = 0;
};

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// How long the streams of each service lasted, as one worker saw it. A stream is a flow that was
// established: half-open connections and single datagrams are none. The worker writes, any thread
// reads.
//
// Nothing is written while a flow runs, only when its entry leaves the flow table or begins a new
// life. There are bins for every service that can exist, in memory that takes no page before its
// first use: nothing is ever allocated while packets come.
#pragma once

#include <array>

#include "lb/flow/flow_life.h"
#include "lib/base/counter.h"
#include "lib/durations/duration_bins.h"
#include "lib/model/stream_query.h"

namespace holdfast {

class StreamCounts {
 public:
  /// Reserves address space; throws std::runtime_error when the system refuses that.
  StreamCounts();
  StreamCounts(const StreamCounts&) = delete;
  StreamCounts& operator=(const StreamCounts&) = delete;
  ~StreamCounts();

  // Owner thread only.
  /// The flow clock: an entry's times mean nothing without it. Call it before packets and sweep.
  void set_now(FlowTime now) { now_ = now; }
  /// `entry` leaves the table, or what was its flow makes room for a new one in its place.
  /// `expired`: since its time-out is over.
  void leave(const FlowEntry& entry, bool expired) {
    if (was_established(entry.life())) record(entry, expired);
  }

  // Any thread.
  [[nodiscard]] StreamRecords read(ServiceNumber service) const;

  /// From its first to its last packet, up to FlowEntry::kOldest.
  [[nodiscard]] static constexpr Quarters duration_of(const FlowEntry& entry, FlowTime now) {
    return entry.age(now) - entry.idle(now);
  }

 private:
  using Bins = std::array<Counter, kDurationBins>;
  struct alignas(64) Row {
    Counter reset;
    Counter excluded;
    Bins ended;
    Bins censored;
  };

  void record(const FlowEntry& entry, bool expired);

  FlowTime now_{0};
  Row* services_ = nullptr;  // one for each number, and one for "none"
};

}  // namespace holdfast

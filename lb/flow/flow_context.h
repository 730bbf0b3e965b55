// SPDX-License-Identifier: Apache-2.0
// All that one worker knows about flows: its flow table and counters, the way to the other workers'
// tables, its rate limit, what time it is, and the flows of fragments. join_fragments and
// pick_backend decide with it, finish counts in it.
//
// Owner: the worker. Other threads may call only what the last section names. Not movable: other
// workers hold references to it.
#pragma once

#include <cstdint>
#include <span>

#include "lb/flow/flow_counts.h"
#include "lb/flow/flow_table.h"
#include "lb/flow/siblings.h"
#include "lb/fragment/fragments.h"
#include "lib/base/instant.h"
#include "lib/base/token_bucket.h"

namespace holdfast {

struct FlowOptions {
  std::uint64_t capacity = 1'000'000;         // entries
  int numa_node = -1;                         // the worker's; -1: any
  std::uint32_t sibling_lookup_rate = 10000;  // a second; for fragments as many once more
  unsigned most_held = 512;                   // fragments that wait for their first one
  Instant start{0};                           // the daemon's start: where the flow clock begins
};

/// What pick_backend counts. The worker writes, any thread reads.
struct alignas(64) PickEvents {
  Counter hits;
  Counter sibling_hits;
  Counter sibling_refused;
  Counter new_flows;
  Counter mid_flow_misses;
  Counter repicked;
};

struct FlowContext {
  FlowContext() : FlowContext(FlowOptions{}) {}
  /// Maps and touches the table's memory. Throws std::runtime_error with one sentence when there is
  /// not enough.
  explicit FlowContext(const FlowOptions& options);
  FlowContext(const FlowContext&) = delete;
  FlowContext& operator=(const FlowContext&) = delete;

  /// Lets the workers see each other's tables. Call once, before the first of them runs.
  static void connect(std::span<FlowContext* const> all);

  // --- Worker only --------------------------------------------------------------------------

  /// pick_backend() and tend() call it. A time before an earlier one is ignored.
  void set_now(Instant time);
  /// Call once a poll, also when idle: reads the other workers' messages and sweeps a part of the
  /// table: as much as is due for one pass in about kSweepPass, but at most `most_entries`, so that
  /// no burst waits long.
  void tend(const Snapshot& snapshot, Instant time, std::uint64_t most_entries);
  /// finish() calls it for each forwarded packet; `inner_bytes`: the IP packet in the tunnel.
  void count_forwarded(ServiceNumber service, BackendNumber backend, std::uint32_t inner_bytes) {
    counts.count_forwarded(service, backend, inner_bytes);
  }

  static constexpr std::chrono::seconds kSweepPass{10};

  Instant clock{0};  // now
  FlowTime now{0};   // the same on the flow clock
  FlowCounts counts{};
  FlowTable table;
  Siblings siblings;
  TokenBucket sibling_lookups;
  PickEvents events{};
  Fragments fragments;

  // --- Any thread ---------------------------------------------------------------------------

  [[nodiscard]] FlowTableCounters table_counters() const;
  [[nodiscard]] FlowCounters backend_counters(BackendNumber number) const {
    return counts.backend(number).read();
  }
  [[nodiscard]] FlowCounters service_counters(ServiceNumber number) const {
    return counts.service(number).read();
  }

 private:
  Instant start_;
  FlowTime swept_until_{0};      // sweep_due_ is counted up to here
  std::uint64_t sweep_due_ = 0;  // entries
};

}  // namespace holdfast

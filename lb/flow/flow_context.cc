// SPDX-License-Identifier: Apache-2.0
#include "lb/flow/flow_context.h"

#include <algorithm>
#include <vector>

namespace holdfast {

FlowContext::FlowContext(const FlowOptions& options)
    : table(options.capacity, options.numa_node, counts),
      siblings(table),
      sibling_lookups(options.sibling_lookup_rate),
      fragments(options.most_held, options.sibling_lookup_rate),
      start_(options.start) {}

void FlowContext::connect(std::span<FlowContext* const> all) {
  std::vector<Siblings*> siblings;
  std::vector<Fragments*> fragments;
  for (FlowContext* const context : all) {
    siblings.push_back(&context->siblings);
    fragments.push_back(&context->fragments);
  }
  Siblings::connect(siblings);
  Fragments::connect(fragments);
}

void FlowContext::set_now(Instant time) {
  clock = std::max(clock, time);
  now = std::max(now, std::chrono::floor<FlowTime>(clock - start_));
  counts.streams.set_now(now);
}

void FlowContext::tend(const Snapshot& snapshot, Instant time, std::uint64_t most_entries) {
  set_now(time);
  siblings.read_messages();
  if (now > swept_until_) {
    constexpr auto kPass = FlowTime{kSweepPass}.count();
    const auto elapsed = static_cast<std::uint64_t>(std::min(kPass, (now - swept_until_).count()));
    const std::uint64_t share = (table.capacity() + kPass - 1) / kPass;
    sweep_due_ = std::min(table.capacity(), sweep_due_ + elapsed * share);
    swept_until_ = now;
  }
  // Whole buckets, so that what is counted is what was swept.
  const std::uint64_t entries =
      std::min(sweep_due_, most_entries) / FlowTable::kWays * FlowTable::kWays;
  if (entries == 0) return;
  table.sweep(snapshot, now, entries);
  sweep_due_ -= entries;
}

FlowTableCounters FlowContext::table_counters() const {
  FlowTableCounters counters;
  table.read_into(counters);
  counters.hits = events.hits.read();
  counters.sibling_hits = events.sibling_hits.read();
  counters.sibling_refused = events.sibling_refused.read();
  counters.new_flows = events.new_flows.read();
  counters.mid_flow_misses = events.mid_flow_misses.read();
  counters.repicked = events.repicked.read();
  return counters;
}

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
#include "lib/model/stats.h"

namespace holdfast {

PacketCounters& PacketCounters::operator+=(const PacketCounters& other) {
  received += other.received;
  forwarded += other.forwarded;
  answered += other.answered;
  to_kernel += other.to_kernel;
  for (std::size_t i = 0; i < dropped.size(); ++i) dropped[i] += other.dropped[i];
  held_now += other.held_now;
  transmitted += other.transmitted;
  extra_fragments += other.extra_fragments;
  injected += other.injected;
  from_kernel += other.from_kernel;
  received_bytes += other.received_bytes;
  forwarded_bytes += other.forwarded_bytes;
  return *this;
}

FlowTableCounters& FlowTableCounters::operator+=(const FlowTableCounters& other) {
  capacity += other.capacity;
  embryonic += other.embryonic;
  established += other.established;
  closing += other.closing;
  inserted += other.inserted;
  expired += other.expired;
  evicted_embryonic += other.evicted_embryonic;
  evicted_stale += other.evicted_stale;
  gone += other.gone;
  handed_over += other.handed_over;
  not_recorded += other.not_recorded;
  relocations += other.relocations;
  hits += other.hits;
  sibling_hits += other.sibling_hits;
  sibling_refused += other.sibling_refused;
  new_flows += other.new_flows;
  mid_flow_misses += other.mid_flow_misses;
  repicked += other.repicked;
  sweeps += other.sweeps;
  return *this;
}

FlowCounters& FlowCounters::operator+=(const FlowCounters& other) {
  packets += other.packets;
  bytes += other.bytes;
  new_flows += other.new_flows;
  active += other.active;
  embryonic += other.embryonic;
  closing += other.closing;
  return *this;
}

}  // namespace holdfast

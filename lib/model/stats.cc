// SPDX-License-Identifier: Apache-2.0
#include "lib/model/stats.h"

namespace holdfast {

PacketCounters& PacketCounters::operator+=(const PacketCounters& other) {
  for (const auto& counter : kPacketCounters) this->*counter.value += other.*counter.value;
  for (std::size_t i = 0; i < dropped.size(); ++i) dropped[i] += other.dropped[i];
  return *this;
}

FlowTableCounters& FlowTableCounters::operator+=(const FlowTableCounters& other) {
  for (const auto& counter : kFlowTableCounters) this->*counter.value += other.*counter.value;
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

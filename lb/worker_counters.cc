// SPDX-License-Identifier: Apache-2.0
#include "lb/worker_counters.h"

namespace holdfast {

PacketCounters WorkerCounters::read() const noexcept {
  PacketCounters result;
  result.received = received.read();
  result.forwarded = forwarded.read();
  result.answered = answered.read();
  result.to_kernel = to_kernel.read();
  for (std::size_t i = 0; i < dropped.size(); ++i) result.dropped[i] = dropped[i].read();
  result.held_now = held_now.read();
  result.transmitted = transmitted.read();
  result.extra_fragments = extra_fragments.read();
  result.injected = injected.read();
  result.from_kernel = from_kernel.read();
  result.received_bytes = received_bytes.read();
  result.forwarded_bytes = forwarded_bytes.read();
  return result;
}

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// How a worker gets and gives packets. The daemon's implementation is a set of DPDK queues
// (lb/port/), the tests' is a list of heap buffers. One object a worker; only its worker calls it.
#pragma once

#include <rte_mbuf.h>

#include <span>

#include "lb/buffer_source.h"
#include "lib/model/numbers.h"

namespace holdfast {

class PacketIo : public BufferSource {
 public:
  /// Up to into.size() packets of one of the worker's receive queues; the queues take turns.
  [[nodiscard]] virtual unsigned receive(std::span<rte_mbuf*> into) = 0;
  /// Hands packets to `port`; the first n of them are taken, n is returned, the rest stay the
  /// caller's.
  [[nodiscard]] virtual unsigned transmit(PortNumber port, std::span<rte_mbuf*> packets) = 0;
  /// Whether `port` transmits packets that are spread over several buffers.
  [[nodiscard]] virtual bool takes_chains(PortNumber /*port*/) const { return true; }
  /// Gives a packet that is not ours to the kernel of the port it came from; false: there is no
  /// way. The buffer is consumed only when true.
  [[nodiscard]] virtual bool to_kernel(rte_mbuf* packet) = 0;
  /// Packets, or buffers that were cut off from one (lb/segments.h).
  virtual void free(std::span<rte_mbuf*> packets) = 0;
  /// The port that a received packet came in by.
  [[nodiscard]] virtual PortNumber came_from(const rte_mbuf& packet) const = 0;
};

}  // namespace holdfast

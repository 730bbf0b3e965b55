// SPDX-License-Identifier: Apache-2.0
#include "lb/port/worker_io.h"

#include <rte_ethdev.h>

namespace holdfast {

unsigned WorkerIo::receive(std::span<rte_mbuf*> into) {
  for (std::size_t tried = 0; tried < parts_.receive.size(); ++tried) {
    const Queue& from = parts_.receive[next_];
    next_ = next_ + 1 == parts_.receive.size() ? 0 : next_ + 1;
    const auto count = rte_eth_rx_burst(from.device, from.queue, into.data(),
                                        static_cast<std::uint16_t>(into.size()));
    if (count == 0) continue;
    last_ = parts_.ports[from.device];
    return count;
  }
  return 0;
}

unsigned WorkerIo::transmit(PortNumber port, std::span<rte_mbuf*> packets) {
  const Queue& to = parts_.transmit[index_of(port)];
  return rte_eth_tx_burst(to.device, to.queue, packets.data(),
                          static_cast<std::uint16_t>(packets.size()));
}

bool WorkerIo::to_kernel(rte_mbuf*) { return false; }

void WorkerIo::free(std::span<rte_mbuf*> packets) {
  rte_pktmbuf_free_bulk(packets.data(), static_cast<unsigned>(packets.size()));
}

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// A worker's DPDK queues: it alone receives and sends on them. Made by Ports, used by the worker's
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lb/packet_io.h"

namespace holdfast {

class WorkerIo : public PacketIo {
 public:
  struct Queue {
    std::uint16_t device = 0;  // DPDK's port id
    std::uint16_t queue = 0;
    bool takes_chains = false;  // of transmit queues
  };
  struct Parts {
    std::vector<Queue> receive{};
    std::vector<Queue> transmit{};    // by PortNumber
    std::vector<int> descriptors{};   // readable when a packet waits on one of `receive`
    std::vector<PortNumber> ports{};  // by DPDK's port id
    rte_mempool* buffers = nullptr;   // that new packets are made in
  };
  explicit WorkerIo(Parts parts) : parts_(std::move(parts)) {}

  /// 0 means that all queues are empty. The queues take turns: a busy one starves no other.
  [[nodiscard]] unsigned receive(std::span<rte_mbuf*> into) override;
  [[nodiscard]] unsigned transmit(PortNumber port, std::span<rte_mbuf*> packets) override;
  /// False always: what is not for a VIP never reaches an AF_XDP port's workers (steering), and
  /// the other kinds of port have no kernel beside them.
  [[nodiscard]] bool to_kernel(rte_mbuf* packet) override;
  [[nodiscard]] bool takes_chains(PortNumber port) const override {
    return parts_.transmit[index_of(port)].takes_chains;
  }
  void free(std::span<rte_mbuf*> packets) override;
  [[nodiscard]] PortNumber came_from(const rte_mbuf& packet) const override {
    // A driver that leaves the field as it was is no reason to read beyond the list.
    return packet.port < parts_.ports.size() ? parts_.ports[packet.port] : last_;
  }
  [[nodiscard]] rte_mbuf* allocate() override { return rte_pktmbuf_alloc(parts_.buffers); }

  [[nodiscard]] const std::vector<int>& descriptors() const { return parts_.descriptors; }
  /// Whether descriptors() tell of every packet. If not, the queues must be looked at.
  [[nodiscard]] bool can_sleep_on_descriptors() const {
    return parts_.descriptors.size() == parts_.receive.size();
  }

 private:
  Parts parts_;
  std::size_t next_ = 0;       // whose turn it is
  PortNumber last_ = kNoPort;  // that packets came in by
};

}  // namespace holdfast

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
  };
  /// `transmit` is indexed by PortNumber. `descriptors`: readable when a packet waits on one of the
  /// queues of `receive`; `all_have_descriptors`: there is one for each of them.
  WorkerIo(std::vector<Queue> receive, std::vector<Queue> transmit, std::vector<int> descriptors)
      : receive_(std::move(receive)),
        transmit_(std::move(transmit)),
        descriptors_(std::move(descriptors)) {}

  /// 0 means that all queues are empty. The queues take turns: a busy one starves no other.
  [[nodiscard]] unsigned receive(std::span<rte_mbuf*> into) override;
  [[nodiscard]] unsigned transmit(PortNumber port, std::span<rte_mbuf*> packets) override;
  /// False always: what is not for a VIP never reaches an AF_XDP port's workers (steering), and
  /// the other kinds of port have no kernel beside them.
  [[nodiscard]] bool to_kernel(rte_mbuf* packet) override;
  void free(std::span<rte_mbuf*> packets) override;

  [[nodiscard]] const std::vector<int>& descriptors() const { return descriptors_; }
  /// Whether descriptors() tell of every packet. If not, the queues must be looked at.
  [[nodiscard]] bool can_sleep_on_descriptors() const {
    return descriptors_.size() == receive_.size();
  }

 private:
  std::vector<Queue> receive_;
  std::vector<Queue> transmit_;
  std::vector<int> descriptors_;
  std::size_t next_ = 0;  // whose turn it is
};

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// The tests' PacketIo: lists (lb/heap/heap_io.h) that can be told to take no more.
#pragma once

#include <map>
#include <set>

#include "lb/heap/heap_io.h"
#include "tests/dsl/layers.h"
#include "tests/dsl/mbuf.h"

namespace holdfast::dsl {

class TestIo : public HeapIo {
 public:
  /// Returns the number by which the packet's fate names it.
  std::size_t push(std::span<const std::uint8_t> frame, const MbufShape& shape);

  bool has_kernel = true;
  unsigned checksums_filled = 0;  // by the port, as packets asked for (RTE_MBUF_F_TX_UDP_CKSUM)
  std::map<PortNumber, unsigned> transmit_room{};  // absent: endless; else so many more are taken
  std::set<PortNumber> without_chains{};           // ports that transmit single buffers only
  unsigned buffers = 1'000'000;                    // so many more can be allocated

  [[nodiscard]] bool takes_chains(PortNumber port) const override {
    return !without_chains.contains(port);
  }
  unsigned transmit(PortNumber port, std::span<rte_mbuf*> packets) override;
  bool to_kernel(rte_mbuf* packet) override;
  [[nodiscard]] rte_mbuf* allocate() override;

 protected:
  void on_sent(const rte_mbuf& packet, Bytes& frame) override;

 private:
  std::size_t pushed_ = 0;
};

}  // namespace holdfast::dsl

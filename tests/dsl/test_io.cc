// SPDX-License-Identifier: Apache-2.0
#include "tests/dsl/test_io.h"

#include <algorithm>
#include <stdexcept>

namespace holdfast::dsl {

namespace {

/// What a NIC does that was asked for a UDP checksum: the field holds the pseudo header's sum, and
/// all from the UDP header on is added to it.
void fill_checksum(const rte_mbuf& mbuf, Bytes& frame) {
  constexpr std::uint64_t kAsked = RTE_MBUF_F_TX_IPV6 | RTE_MBUF_F_TX_UDP_CKSUM;
  constexpr std::uint64_t kAll = RTE_MBUF_F_TX_L4_MASK | RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IPV6 |
                                 RTE_MBUF_F_TX_IP_CKSUM | RTE_MBUF_F_TX_TCP_SEG |
                                 RTE_MBUF_F_TX_UDP_SEG | RTE_MBUF_F_TX_OUTER_UDP_CKSUM;
  if ((mbuf.ol_flags & kAll) != kAsked)
    throw std::logic_error("the port is asked for another checksum than that of UDP over IPv6");
  const std::size_t udp = mbuf.l2_len + mbuf.l3_len;
  std::uint32_t sum = 0;
  for (std::size_t i = udp; i < frame.size(); ++i)
    sum += (i - udp) % 2 == 0 ? frame[i] * 256u : frame[i];
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  const std::uint32_t checksum = sum == 0xffff ? 0xffff : ~sum & 0xffff;
  frame.at(udp + 6) = static_cast<std::uint8_t>(checksum >> 8);
  frame.at(udp + 7) = static_cast<std::uint8_t>(checksum);
}

}  // namespace

std::size_t TestIo::push(std::span<const std::uint8_t> frame, const MbufShape& shape) {
  HeapIo::push(frame, shape, pushed_);
  return pushed_++;
}

unsigned TestIo::transmit(PortNumber port, std::span<rte_mbuf*> packets) {
  auto taken = static_cast<unsigned>(packets.size());
  if (const auto room = transmit_room.find(port); room != transmit_room.end()) {
    taken = std::min(taken, room->second);
    room->second -= taken;
  }
  return HeapIo::transmit(port, packets.first(taken));
}

bool TestIo::to_kernel(rte_mbuf* packet) { return has_kernel && HeapIo::to_kernel(packet); }

rte_mbuf* TestIo::allocate() {
  if (buffers == 0) return nullptr;
  --buffers;
  return HeapIo::allocate();
}

void TestIo::on_sent(const rte_mbuf& packet, Bytes& frame) {
  if ((packet.ol_flags & RTE_MBUF_F_TX_L4_MASK) == 0) return;
  fill_checksum(packet, frame);
  ++checksums_filled;
}

}  // namespace holdfast::dsl

// SPDX-License-Identifier: Apache-2.0
#include "lb/encap/outer_udp.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>

namespace holdfast {

namespace {

/// The inner packet's bytes in the first segment: headers are read in no other.
std::span<const std::uint8_t> in_first_segment(const std::uint8_t* inner, const Tunnel& tunnel) {
  const auto* const data = rte_pktmbuf_mtod(&tunnel.mbuf, const std::uint8_t*);
  const auto there = static_cast<std::size_t>(data + tunnel.mbuf.data_len - inner);
  return {inner, std::min<std::size_t>(there, tunnel.packet.ip_length)};
}

/// Every byte, over all segments. The one at an odd place counts as the low half of its word: a
/// segment that begins there is summed as if it began at an even one, and its sum turned around.
std::uint64_t sum_of_bytes(std::span<const std::uint8_t> first, const Tunnel& tunnel) {
  std::uint64_t sum = checksum_add(first);
  std::size_t done = first.size();
  const std::size_t all = tunnel.packet.ip_length;
  for (const rte_mbuf* segment = tunnel.mbuf.next; segment != nullptr && done < all;
       segment = segment->next) {
    const std::size_t size = std::min<std::size_t>(segment->data_len, all - done);
    const std::uint16_t part =
        checksum_fold(checksum_add({rte_pktmbuf_mtod(segment, const std::uint8_t*), size}));
    sum += done % 2 == 0 ? part : __builtin_bswap16(part);
    done += size;
  }
  return sum;
}

/// The sum of a whole TCP or UDP packet, from its header alone. A right transport checksum makes
/// segment and pseudo header add up to nothing, so the segment's sum is the complement of the
/// pseudo header's; and the addresses, which are in both headers, cancel. When it is wrong, the
/// result is wrong by as much: damage is found at the outer checksum then.
///
/// Not with IPv4 options or IPv6 extension headers: a source route puts another destination into
/// the pseudo header than stands in the IP header.
template <Family kInner>
std::optional<std::uint64_t> sum_by_checksum(std::span<const std::uint8_t> inner,
                                             const ParsedPacket& packet) {
  constexpr std::size_t kHeader = kInner == Family::ipv4 ? sizeof(Ipv4Header) : sizeof(Ipv6Header);
  const bool is_udp = packet.kind == PacketKind::udp;
  if ((!is_udp && packet.kind != PacketKind::tcp) || packet.part != FragmentPart::whole ||
      std::size_t{packet.l4_offset} - packet.l3_offset != kHeader ||
      inner.size() < kHeader + sizeof(UdpHeader))
    return std::nullopt;
  const auto length = Be16::from_host(static_cast<std::uint16_t>(packet.ip_length - kHeader));
  if (is_udp) {
    UdpHeader udp;
    std::memcpy(&udp, inner.data() + kHeader, sizeof udp);
    // Zero says that there is none, and a shorter length that not all bytes are covered.
    if (udp.checksum == Be16{} || udp.length != length) return std::nullopt;
  }
  const auto protocol =
      Be16::from_host(static_cast<std::uint16_t>(is_udp ? IpProtocol::udp : IpProtocol::tcp));
  constexpr std::size_t kBeforeAddresses =
      kInner == Family::ipv4 ? offsetof(Ipv4Header, source) : offsetof(Ipv6Header, source);
  const std::uint16_t pseudo =
      checksum_fold(std::uint64_t{length.raw()} + std::uint64_t{protocol.raw()});
  return checksum_add(inner.first(kBeforeAddresses)) + static_cast<std::uint16_t>(~pseudo);
}

std::uint64_t inner_sum(const std::uint8_t* at, const Tunnel& tunnel) {
  const auto inner = in_first_segment(at, tunnel);
  const auto known = tunnel.packet.family == Family::ipv4
                         ? sum_by_checksum<Family::ipv4>(inner, tunnel.packet)
                         : sum_by_checksum<Family::ipv6>(inner, tunnel.packet);
  return known ? *known : sum_of_bytes(inner, tunnel);
}

}  // namespace

Be16 outer_udp6_checksum(const std::uint8_t* ip, const Tunnel& tunnel, std::size_t shim) noexcept {
  const std::size_t before = sizeof(UdpHeader) + shim;
  const auto length = static_cast<std::uint32_t>(before + tunnel.packet.ip_length);
  constexpr auto kProtocol = Be32::from_host(static_cast<std::uint32_t>(IpProtocol::udp));
  std::uint64_t sum = checksum_add({ip + offsetof(Ipv6Header, source), 32});
  sum += std::uint64_t{Be32::from_host(length).raw()} + kProtocol.raw();
  if (tunnel.port_sums_udp) {
    rte_mbuf& mbuf = tunnel.mbuf;
    mbuf.ol_flags |= RTE_MBUF_F_TX_IPV6 | RTE_MBUF_F_TX_UDP_CKSUM;
    mbuf.tx_offload = 0;
    mbuf.l2_len = static_cast<std::uint64_t>(ip - rte_pktmbuf_mtod(&mbuf, std::uint8_t*)) & 0x7f;
    mbuf.l3_len = sizeof(Ipv6Header);
    mbuf.l4_len = sizeof(UdpHeader);
    return std::bit_cast<Be16>(checksum_fold(sum));
  }
  sum = checksum_add({ip + sizeof(Ipv6Header), before}, sum);
  const Be16 checksum = checksum_finish(sum + inner_sum(ip + sizeof(Ipv6Header) + before, tunnel));
  // Zero would say that there is none (RFC 8200 8.1); all ones is the same number.
  return checksum == Be16{} ? Be16::from_host(0xffff) : checksum;
}

}  // namespace holdfast

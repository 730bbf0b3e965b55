// SPDX-License-Identifier: Apache-2.0
// The outer IP header, which all encapsulations begin with. Pure; workers call it through encap.h.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <new>

#include "lb/encap/tunnel.h"
#include "lib/net/checksum.h"

namespace holdfast {

/// Written into every outer header, whatever the inner one says: the tunnel is one hop for the
/// client's packet, and must reach the backend however far it is (RFC 2473 6.3).
inline constexpr std::uint8_t kOuterTimeToLive = 64;

namespace outer {

inline std::uint8_t traffic_class(const Tunnel& tunnel) {
  const OuterClass& wanted = tunnel.backend.outer_class;
  return static_cast<std::uint8_t>((tunnel.packet.traffic_class & wanted.kept) | wanted.set);
}

/// The part of the outer source that is the flow's own, as it lies in the packet.
inline std::uint32_t source_bits(const Tunnel& tunnel) {
  return Be32::from_host(tunnel.entropy & tunnel.backend.source_spread).raw();
}

/// As 32-bit words in memory order, so that header and checksum are made in registers: one that is
/// written field by field is read back from memory, which takes as long as all else here.
inline void write_ipv4(std::uint8_t* at, const Tunnel& tunnel, IpProtocol protocol,
                       std::uint16_t payload) {
  static_assert(std::endian::native == std::endian::little);
  const auto length = static_cast<std::uint16_t>(payload + sizeof(Ipv4Header));
  std::array<std::uint32_t, 5> words{
      0x45u | std::uint32_t{traffic_class(tunnel)} << 8 |
          std::uint32_t{Be16::from_host(length).raw()} << 16,
      // With DF set nothing is ever reassembled, so the ID means nothing (RFC 6864 4.1).
      std::uint32_t{Be16::from_host(Ipv4Header::kDontFragment).raw()} << 16,
      kOuterTimeToLive | std::uint32_t{static_cast<std::uint8_t>(protocol)} << 8,
      tunnel.backend.tunnel_source.as_v4().raw() | source_bits(tunnel),
      tunnel.backend.address.as_v4().raw()};
  const std::uint64_t sum = std::uint64_t{words[0]} + words[1] + words[2] + words[3] + words[4];
  words[2] |= std::uint32_t{checksum_finish(sum).raw()} << 16;
  for (std::size_t i = 0; i < words.size(); ++i) std::memcpy(at + 4 * i, &words[i], 4);
}

inline void write_ipv6(std::uint8_t* at, const Tunnel& tunnel, IpProtocol protocol,
                       std::uint16_t payload) {
  // RFC 6438: the flow label carries the inner flow's entropy, so that routers spread the tunnel.
  const std::uint32_t flow_label = tunnel.entropy & 0xfffff;
  const std::uint32_t first = traffic_class(tunnel);
  new (at) Ipv6Header{
      .version_class_label = Be32::from_host(6u << 28 | first << 20 | flow_label),
      .payload_length = Be16::from_host(payload),
      .next_header = protocol,
      .hop_limit = kOuterTimeToLive,
      .source = tunnel.backend.tunnel_source.bytes(),
      .destination = tunnel.backend.address.bytes(),
  };
  if (tunnel.backend.source_spread == 0) return;
  std::uint32_t last;
  std::uint8_t* const at_last = at + offsetof(Ipv6Header, destination) - sizeof last;
  std::memcpy(&last, at_last, sizeof last);
  last |= source_bits(tunnel);
  std::memcpy(at_last, &last, sizeof last);
}

}  // namespace outer

/// The number that says what an IP header carries directly inside another header.
[[nodiscard]] constexpr IpProtocol protocol_of(Family inner) {
  return inner == Family::ipv4 ? IpProtocol::ipv4 : IpProtocol::ipv6;
}

/// Bytes of the outer IP header: nothing of ours has options or extension headers.
template <Family kOuter>
inline constexpr std::size_t kOuterIpSize = kOuter == Family::ipv4 ? sizeof(Ipv4Header)
                                                                   : sizeof(Ipv6Header);

/// `between`: bytes that lie between the outer and the inner IP header.
template <Family kOuter>
inline void write_outer_ip(std::uint8_t* at, const Tunnel& tunnel, IpProtocol protocol,
                           std::size_t between) {
  const auto payload = static_cast<std::uint16_t>(tunnel.packet.ip_length + between);
  if constexpr (kOuter == Family::ipv4)
    outer::write_ipv4(at, tunnel, protocol, payload);
  else
    outer::write_ipv6(at, tunnel, protocol, payload);
}

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// IP in IP, in all four mixes of families: RFC 2003 (4 in 4), RFC 4213 (6 in 4), RFC 2473 (4 and 6
// in 6). Nothing but an outer header. Pure; workers call it through encap.h.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <new>

#include "lb/encap/tunnel.h"
#include "lib/net/checksum.h"

namespace holdfast {
namespace ipip {

[[nodiscard]] constexpr IpProtocol protocol_of(Family inner) {
  return inner == Family::ipv4 ? IpProtocol::ipv4 : IpProtocol::ipv6;
}

/// As 32-bit words in memory order, so that header and checksum are made in registers: one that is
/// written field by field is read back from memory, which takes as long as all else here.
inline void write_ipv4(std::uint8_t* at, const Tunnel& tunnel) {
  static_assert(std::endian::native == std::endian::little);
  const auto length = static_cast<std::uint16_t>(tunnel.packet.ip_length + sizeof(Ipv4Header));
  std::array<std::uint32_t, 5> words{
      // ECN must be copied (RFC 6040 4.1, normal mode), DSCP is by choice (RFC 2983: the uniform
      // model, so that the fabric treats tunnelled packets as it would the client's).
      0x45u | std::uint32_t{tunnel.packet.traffic_class} << 8 |
          std::uint32_t{Be16::from_host(length).raw()} << 16,
      // With DF set nothing is ever reassembled, so the ID means nothing (RFC 6864 4.1).
      std::uint32_t{Be16::from_host(Ipv4Header::kDontFragment).raw()} << 16,
      kOuterTimeToLive | std::uint32_t{static_cast<std::uint8_t>(protocol_of(tunnel.packet.family))}
                             << 8,
      tunnel.backend.tunnel_source.as_v4().raw(), tunnel.backend.address.as_v4().raw()};
  const std::uint64_t sum = std::uint64_t{words[0]} + words[1] + words[2] + words[3] + words[4];
  words[2] |= std::uint32_t{checksum_finish(sum).raw()} << 16;
  for (std::size_t i = 0; i < words.size(); ++i) std::memcpy(at + 4 * i, &words[i], 4);
}

inline void write_ipv6(std::uint8_t* at, const Tunnel& tunnel) {
  // RFC 6438: the flow label carries the inner flow's entropy, so that routers spread the tunnel.
  const std::uint32_t flow_label = tunnel.entropy & 0xfffff;
  const std::uint32_t traffic_class = tunnel.packet.traffic_class;
  new (at) Ipv6Header{
      .version_class_label = Be32::from_host(6u << 28 | traffic_class << 20 | flow_label),
      .payload_length = Be16::from_host(tunnel.packet.ip_length),
      .next_header = protocol_of(tunnel.packet.family),
      .hop_limit = kOuterTimeToLive,
      .source = tunnel.backend.tunnel_source.bytes(),
      .destination = tunnel.backend.address.bytes(),
  };
}

}  // namespace ipip

/// Fills the outer IP header at `at`.
template <Family kOuter>
inline void write_ipip(std::uint8_t* at, const Tunnel& tunnel) noexcept {
  if constexpr (kOuter == Family::ipv4)
    ipip::write_ipv4(at, tunnel);
  else
    ipip::write_ipv6(at, tunnel);
}

}  // namespace holdfast

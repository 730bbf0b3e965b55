// SPDX-License-Identifier: Apache-2.0
// The outer IP and UDP headers of both variants of GUE. Workers call it through gue.h and gue0.h.
#pragma once

#include "lb/encap/outer_ip.h"

namespace holdfast {

/// RFC 8086 3.2.1 asks for an ephemeral port, 49152 to 65535: 14 bits of the flow's entropy.
[[nodiscard]] constexpr std::uint16_t outer_source_port(std::uint32_t entropy) {
  return static_cast<std::uint16_t>(0xc000 | (entropy & 0x3fff));
}

/// What the outer UDP header over IPv6 has as its checksum; or the port is told to fill it in, and
/// it is the pseudo header's sum. Requires: all else, from the outer IP header at `ip` to the end
/// of the inner packet, is in place; `shim` bytes lie between the UDP header and the inner packet.
[[nodiscard]] Be16 outer_udp6_checksum(const std::uint8_t* ip, const Tunnel& tunnel,
                                       std::size_t shim) noexcept;

/// `shim`: bytes between the UDP header and the inner packet, already there.
template <Family kOuter>
inline void write_outer_udp(std::uint8_t* at, const Tunnel& tunnel, std::size_t shim) noexcept {
  write_outer_ip<kOuter>(at, tunnel, IpProtocol::udp, sizeof(UdpHeader) + shim);
  const auto length =
      static_cast<std::uint16_t>(tunnel.packet.ip_length + sizeof(UdpHeader) + shim);
  auto* const udp = new (at + kOuterIpSize<kOuter>)
      UdpHeader{.source_port = Be16::from_host(outer_source_port(tunnel.entropy)),
                .destination_port = Be16::from_host(Gue0Header::kPort),
                .length = Be16::from_host(length),
                .checksum = {}};
  // Over IPv4 there is none: the inner packet has its own, and the outer addresses have the IP
  // header's. Over IPv6 nothing else guards the addresses (RFC 6936).
  if constexpr (kOuter == Family::ipv6)
    if (tunnel.backend.udp6_checksum) udp->checksum = outer_udp6_checksum(at, tunnel, shim);
}

}  // namespace holdfast

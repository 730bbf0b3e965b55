// SPDX-License-Identifier: Apache-2.0
// GRE: RFC 2784 over IPv4, RFC 7676 over IPv6. No key, no checksum, no sequence number: between the
// IP headers lie four bytes. Pure; workers call it through encap.h.
#pragma once

#include "lb/encap/outer_ip.h"

namespace holdfast {

template <Family kOuter>
inline void write_gre(std::uint8_t* at, const Tunnel& tunnel) noexcept {
  write_outer_ip<kOuter>(at, tunnel, IpProtocol::gre, sizeof(GreHeader));
  const auto type = tunnel.packet.family == Family::ipv4 ? EtherType::ipv4 : EtherType::ipv6;
  new (at + kOuterIpSize<kOuter>) GreHeader{
      .flags_version = {}, .protocol_type = Be16::from_host(static_cast<std::uint16_t>(type))};
}

}  // namespace holdfast

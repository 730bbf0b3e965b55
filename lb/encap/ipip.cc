// SPDX-License-Identifier: Apache-2.0
#include "lb/encap/ipip.h"

#include <new>

#include "lib/net/checksum.h"

namespace holdfast {

namespace {

IpProtocol protocol_of(Family inner) {
  return inner == Family::ipv4 ? IpProtocol::ipv4 : IpProtocol::ipv6;
}

void write_ipv4(std::uint8_t* at, const Tunnel& tunnel) {
  const auto length = static_cast<std::uint16_t>(tunnel.packet.ip_length + sizeof(Ipv4Header));
  auto* header = new (at) Ipv4Header{
      .version_ihl = 0x45,
      // ECN must be copied (RFC 6040 4.1, normal mode), DSCP is by choice (RFC 2983: the uniform
      // model, so that the fabric treats tunnelled packets as it would the client's).
      .type_of_service = tunnel.packet.traffic_class,
      .total_length = Be16::from_host(length),
      // With DF set nothing is ever reassembled, so the ID means nothing (RFC 6864 4.1).
      .identification = {},
      .flags_fragment_offset = Be16::from_host(Ipv4Header::kDontFragment),
      .time_to_live = kOuterTimeToLive,
      .protocol = protocol_of(tunnel.packet.family),
      .header_checksum = {},
      .source = tunnel.backend.tunnel_source.as_v4(),
      .destination = tunnel.backend.address.as_v4(),
  };
  header->header_checksum = ipv4_header_checksum(*header);
}

void write_ipv6(std::uint8_t* at, const Tunnel& tunnel) {
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

}  // namespace

void write_ipip(std::uint8_t* at, const Tunnel& tunnel) noexcept {
  if (tunnel.backend.address.is_v4())
    write_ipv4(at, tunnel);
  else
    write_ipv6(at, tunnel);
}

}  // namespace holdfast

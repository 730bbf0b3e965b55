// SPDX-License-Identifier: Apache-2.0
// The short way through the parser, for what nearly every packet is: untagged, IPv4 without options
// or IPv6 without extension headers, not a fragment, TCP or UDP, without any fault. It accepts a
// packet or says nothing about it; parse_packet() (lib/net/parse.h) takes all others, and would
// have filled in the same (tests/unit/parse_plain_test.cc). Each check is one comparison on a field
// as it lies in the frame. Pure; any thread.
#pragma once

#include <cstdint>
#include <new>
#include <span>

#include "lib/net/headers.h"
#include "lib/net/ip_walk.h"
#include "lib/net/parse.h"

namespace holdfast {
namespace plain {

/// TCP or UDP in the `length` bytes at `l4`, of which a whole TCP header can be read.
[[nodiscard]] inline bool parse_transport(const std::uint8_t* l4, std::size_t length,
                                          IpProtocol protocol, ParsedPacket& packet) {
  if (protocol == IpProtocol::tcp) [[likely]] {
    const auto& tcp = overlay<TcpHeader>(l4);
    const std::size_t header = (tcp.data_offset >> 4) * std::size_t{4};
    if (header < sizeof(TcpHeader) || header > length) return false;
    packet.kind = PacketKind::tcp;
    packet.tcp_flags = tcp.flags;
    packet.has_payload = length > header;
  } else if (protocol == IpProtocol::udp && length >= sizeof(UdpHeader)) {
    const std::size_t told = overlay<UdpHeader>(l4).length.host();
    if (told < sizeof(UdpHeader) || told > length) return false;
    packet.kind = PacketKind::udp;
    packet.tcp_flags = 0;
    packet.has_payload = length > sizeof(UdpHeader);
  } else {
    return false;
  }
  packet.protocol = protocol;
  packet.service_port = overlay<Be16>(l4 + sizeof(Be16));
  return true;
}

[[nodiscard]] inline bool parse_ipv4(const std::uint8_t* frame, std::size_t size,
                                     ParsedPacket& packet) {
  const std::uint8_t* const ip = frame + sizeof(EthernetHeader);
  const auto& header = overlay<Ipv4Header>(ip);
  const std::size_t length = header.total_length.host();
  const std::uint16_t fragment = header.flags_fragment_offset.host();
  const std::uint8_t first = ip[offsetof(Ipv4Header, source)];
  const bool martian =
      first == 0 || first == 127 || first >= 224 || header.source.raw() == header.destination.raw();
  if (header.version_ihl != 0x45 || length < sizeof header ||
      length > size - sizeof(EthernetHeader) ||
      (fragment & (Ipv4Header::kMoreFragments | Ipv4Header::kOffsetMask)) != 0 || martian)
    return false;
  const std::uint8_t* const l4 = ip + sizeof header;
  if (!parse_transport(l4, length - sizeof header, header.protocol, packet)) return false;

  packet.family = Family::ipv4;
  packet.traffic_class = header.type_of_service;
  packet.dont_fragment = (fragment & Ipv4Header::kDontFragment) != 0;
  packet.part = FragmentPart::whole;
  packet.authenticated = false;
  packet.l3_offset = sizeof(EthernetHeader);
  packet.l4_offset = sizeof(EthernetHeader) + sizeof header;
  packet.ip_length = static_cast<std::uint16_t>(length);
  new (&packet.vip) IpAddress(IpAddress::v4(header.destination));
  packet.key.set_contiguous<Family::ipv4>(ip + offsetof(Ipv4Header, source), header.protocol);
  return true;
}

[[nodiscard]] inline bool parse_ipv6(const std::uint8_t* frame, std::size_t size,
                                     ParsedPacket& packet) {
  const std::uint8_t* const ip = frame + sizeof(EthernetHeader);
  const auto& header = overlay<Ipv6Header>(ip);
  const std::size_t length = header.payload_length.host();
  const auto& source_high = overlay<Be64>(header.source.data());
  const auto& source_low = overlay<Be64>(header.source.data() + 8);
  const bool to_itself = source_high == overlay<Be64>(header.destination.data()) &&
                         source_low == overlay<Be64>(header.destination.data() + 8);
  // What begins with eight zero bytes is left to the longer way, which knows which of them are bad.
  if (header.version() != 6 || length == 0 ||
      length > size - sizeof(EthernetHeader) - sizeof header || header.source[0] == 0xff ||
      source_high.raw() == 0 || to_itself)
    return false;
  const std::uint8_t* const l4 = ip + sizeof header;
  if (!parse_transport(l4, length, header.next_header, packet)) return false;

  packet.family = Family::ipv6;
  packet.traffic_class = header.traffic_class();
  packet.dont_fragment = true;
  packet.part = FragmentPart::whole;
  packet.authenticated = false;
  packet.l3_offset = sizeof(EthernetHeader);
  packet.l4_offset = sizeof(EthernetHeader) + sizeof header;
  packet.ip_length = static_cast<std::uint16_t>(length + sizeof header);
  new (&packet.vip) IpAddress(IpAddress::v6(header.destination));
  packet.key.set_contiguous<Family::ipv6>(ip + offsetof(Ipv6Header, source), header.next_header);
  return true;
}

}  // namespace plain

/// True: `packet` is filled as parse_packet() would have, which would have left it undecided.
/// False: ask parse_packet(); `packet` holds nothing that means anything.
[[nodiscard]] inline bool parse_plain(std::span<const std::uint8_t> frame, ParsedPacket& packet) {
  constexpr std::size_t kV4 = sizeof(EthernetHeader) + sizeof(Ipv4Header) + sizeof(TcpHeader);
  constexpr std::size_t kV6 = sizeof(EthernetHeader) + sizeof(Ipv6Header) + sizeof(TcpHeader);
  // Longer ones have offsets that 16 bits may not hold.
  if (frame.size() < kV4 || frame.size() > 65535) return false;
  const std::uint16_t type = overlay<EthernetHeader>(frame.data()).ether_type.raw();
  constexpr auto wire = [](EtherType value) {
    return Be16::from_host(static_cast<std::uint16_t>(value)).raw();
  };
  if (type == wire(EtherType::ipv4)) return plain::parse_ipv4(frame.data(), frame.size(), packet);
  return type == wire(EtherType::ipv6) && frame.size() >= kV6 &&
         plain::parse_ipv6(frame.data(), frame.size(), packet);
}

}  // namespace holdfast

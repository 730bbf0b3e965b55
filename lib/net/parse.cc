// SPDX-License-Identifier: Apache-2.0
#include "lib/net/parse.h"

#include "lib/net/ip_walk.h"

namespace holdfast {

namespace {

constexpr int kMaxVlanTags = 2;
/// What a data length of an mbuf can say; it keeps every offset in 16 bits.
constexpr std::size_t kMaxFrame = 65535;

Verdict drop(DropReason why) { return Verdict::dropped(why); }

IpAddress address_of(Family family, const std::uint8_t* bytes) {
  if (family == Family::ipv4) return IpAddress::v4(read_header<Be32>(bytes));
  return IpAddress::v6(read_header<IpAddress::Bytes>(bytes));
}

/// Sources that no client may have (RFC 1812 5.3.7): this network 0/8, loopback 127/8, multicast
/// 224/4, class E and broadcast 240/4; and the VIP itself.
bool is_martian_v4(const IpWalk& walk) {
  const std::uint8_t first = walk.source[0];
  return first == 0 || first == 127 || first >= 224 ||
         std::memcmp(walk.source, walk.destination, 4) == 0;
}

/// The same for IPv6 (RFC 4291 2.5 and 2.7, RFC 6890): multicast, unspecified, loopback, IPv4 in
/// IPv6 clothes, and the VIP itself.
bool is_martian_v6(const IpWalk& walk) {
  if (walk.source[0] == 0xff || std::memcmp(walk.source, walk.destination, 16) == 0) return true;
  // ::, ::1, ::a.b.c.d and ::ffff:a.b.c.d all begin with ten zero bytes; so does nothing else that
  // is routed.
  constexpr std::uint8_t kZeros[10]{};
  return std::memcmp(walk.source, kZeros, sizeof kZeros) == 0;
}

bool is_icmp_error(Family family, std::uint8_t type) {
  // Destination unreachable, time exceeded, parameter problem; IPv6 also packet too big. Source
  // quench (RFC 6633) and redirects are no answers to a flow.
  return family == Family::ipv4 ? type == 3 || type == 11 || type == 12 : type >= 1 && type <= 4;
}

/// The flow of an ICMP error is that of the packet it quotes, turned around. `quote`: the bytes
/// behind the ICMP header; `walk`: the packet that carries them.
Verdict parse_quote(const std::uint8_t* quote, std::size_t available, const IpWalk& walk,
                    ParsedPacket& packet) {
  const IpWalk quoted = packet.family == Family::ipv4 ? walk_ipv4<WalkOf::quote>(quote, available)
                                                      : walk_ipv6(quote, available, WalkOf::quote);
  const std::size_t width = packet.family == Family::ipv4 ? 4 : 16;
  const bool names_flow =
      quoted.good && quoted.part != FragmentPart::later &&
      (quoted.protocol == IpProtocol::tcp || quoted.protocol == IpProtocol::udp) &&
      quoted.end - quoted.l4 >= 2 * sizeof(Be16) &&
      // Who complains to the VIP must complain about a packet that the VIP sent.
      std::memcmp(quoted.source, walk.destination, width) == 0;
  if (!names_flow) return drop(DropReason::icmp_bad_quote);

  // TCP and UDP both begin with source port and destination port.
  const auto vip_port = read_header<Be16>(quote + quoted.l4);
  const auto client_port = read_header<Be16>(quote + quoted.l4 + sizeof(Be16));
  packet.kind = PacketKind::icmp_error;
  packet.protocol = quoted.protocol;
  packet.service_port = vip_port;
  packet.key = FlowKey(packet.family, quoted.destination, quoted.source, client_port, vip_port,
                       quoted.protocol);
  return {};
}

Verdict parse_tcp(const std::uint8_t* l4, std::size_t length, ParsedPacket& packet) {
  if (length < sizeof(TcpHeader)) return drop(DropReason::l4_truncated);
  const auto header = read_header<TcpHeader>(l4);
  const std::size_t header_length = (header.data_offset >> 4) * std::size_t{4};
  if (header_length < sizeof(TcpHeader) || header_length > length)
    return drop(DropReason::tcp_bad_header_length);
  packet.kind = PacketKind::tcp;
  packet.tcp_flags = header.flags;
  packet.has_payload = length > header_length;
  return {};
}

Verdict parse_udp(std::size_t length, ParsedPacket& packet) {
  if (length < sizeof(UdpHeader)) return drop(DropReason::l4_truncated);
  packet.kind = PacketKind::udp;
  packet.has_payload = length > sizeof(UdpHeader);
  return {};
}

Verdict parse_icmp(const std::uint8_t* l4, std::size_t length, const IpWalk& walk,
                   ParsedPacket& packet) {
  if (length < sizeof(IcmpHeader)) return drop(DropReason::l4_truncated);
  const auto header = read_header<IcmpHeader>(l4);
  if (!is_icmp_error(packet.family, header.type)) return drop(DropReason::icmp_not_routed);
  return parse_quote(l4 + sizeof header, length - sizeof header, walk, packet);
}

/// The transport header. `ip`: where `walk` began.
Verdict parse_transport(const std::uint8_t* ip, const IpWalk& walk, ParsedPacket& packet) {
  const std::uint8_t* l4 = ip + walk.l4;
  const std::size_t length = walk.end - walk.l4;
  const IpProtocol icmp = packet.family == Family::ipv4 ? IpProtocol::icmp : IpProtocol::icmpv6;
  Verdict verdict;
  if (walk.protocol == IpProtocol::tcp)
    verdict = parse_tcp(l4, length, packet);
  else if (walk.protocol == IpProtocol::udp)
    verdict = parse_udp(length, packet);
  else if (walk.protocol == icmp)
    return parse_icmp(l4, length, walk, packet);
  else
    return drop(DropReason::unknown_protocol);
  if (verdict.decided()) return verdict;

  const auto client_port = read_header<Be16>(l4);
  packet.protocol = walk.protocol;
  packet.service_port = read_header<Be16>(l4 + sizeof(Be16));
  packet.key = FlowKey(packet.family, walk.source, walk.destination, client_port,
                       packet.service_port, walk.protocol);
  return {};
}

ParseResult parse_ip(const std::uint8_t* frame, std::size_t size, Family family,
                     ParsedPacket& packet) {
  const std::uint8_t* ip = frame + packet.l3_offset;
  const std::size_t available = size - packet.l3_offset;
  const bool is_v4 = family == Family::ipv4;
  const IpWalk walk =
      is_v4 ? walk_ipv4<WalkOf::packet>(ip, available) : walk_ipv6(ip, available, WalkOf::packet);
  packet.family = family;
  if (walk.addresses_known) packet.vip = address_of(family, walk.destination);
  const auto result = [&walk](Verdict verdict) {
    return ParseResult{verdict, walk.addresses_known};
  };
  if (!walk.good) return result(drop(walk.fault));
  if (is_v4 ? is_martian_v4(walk) : is_martian_v6(walk))
    return result(drop(is_v4 ? DropReason::ipv4_martian : DropReason::ipv6_martian));
  if (walk.part != FragmentPart::whole)
    return result(drop(is_v4 ? DropReason::ipv4_fragment : DropReason::ipv6_fragment));

  packet.traffic_class = walk.traffic_class;
  packet.dont_fragment = walk.dont_fragment;
  packet.ip_length = static_cast<std::uint16_t>(walk.length);
  packet.l4_offset = static_cast<std::uint16_t>(packet.l3_offset + walk.l4);
  return result(parse_transport(ip, walk, packet));
}

}  // namespace

ParseResult parse_packet(std::span<const std::uint8_t> frame, ParsedPacket& packet) {
  packet = {};
  const std::size_t size = std::min(frame.size(), kMaxFrame);
  if (size < sizeof(EthernetHeader)) return {drop(DropReason::l2_truncated)};
  std::size_t offset = sizeof(EthernetHeader);
  auto type = static_cast<EtherType>(read_header<EthernetHeader>(frame.data()).ether_type.host());
  for (int tags = 0; type == EtherType::vlan || type == EtherType::service_vlan; ++tags) {
    if (tags == kMaxVlanTags) return {Verdict::kernel()};
    if (size - offset < sizeof(VlanHeader)) return {drop(DropReason::l2_truncated)};
    type = static_cast<EtherType>(read_header<VlanHeader>(frame.data() + offset).ether_type.host());
    offset += sizeof(VlanHeader);
  }
  packet.l3_offset = static_cast<std::uint16_t>(offset);
  if (type == EtherType::ipv4) return parse_ip(frame.data(), size, Family::ipv4, packet);
  if (type == EtherType::ipv6) return parse_ip(frame.data(), size, Family::ipv6, packet);
  return {Verdict::kernel()};
}

}  // namespace holdfast

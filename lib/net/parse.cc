// SPDX-License-Identifier: Apache-2.0
#include "lib/net/parse.h"

#include <cstring>
#include <new>

#include "lib/net/ip_walk.h"

namespace holdfast {

namespace {

constexpr int kMaxVlanTags = 2;
/// What a data length of an mbuf can say; it keeps every offset in 16 bits.
constexpr std::size_t kMaxFrame = 65535;

template <Family kFamily>
constexpr std::size_t kAddressWidth = kFamily == Family::ipv4 ? 4 : 16;

Verdict drop(DropReason why) { return Verdict::dropped(why); }

/// The two below build the value where it stays: a temporary would be copied in pieces of another
/// size than it was written in, and the processor waits for that.
template <Family kFamily>
void set_vip(ParsedPacket& packet, const std::uint8_t* address) {
  if constexpr (kFamily == Family::ipv4)
    new (&packet.vip) IpAddress(IpAddress::v4(overlay<Be32>(address)));
  else
    new (&packet.vip) IpAddress(IpAddress::v6(overlay<IpAddress::Bytes>(address)));
}

template <Family kFamily>
void set_flow(ParsedPacket& packet, const std::uint8_t* client, const std::uint8_t* vip,
              Be16 client_port, Be16 vip_port, IpProtocol protocol) {
  packet.protocol = protocol;
  packet.service_port = vip_port;
  new (&packet.key) FlowKey(kFamily, client, vip, client_port, vip_port, protocol);
}

/// The reason of the packet's own family.
template <Family kFamily>
Verdict drop(DropReason of_ipv4, DropReason of_ipv6) {
  return drop(kFamily == Family::ipv4 ? of_ipv4 : of_ipv6);
}

/// Sources that no client may have, and the VIP itself; other VIPs are no affair of this packet
/// alone. IPv4 (RFC 1812 5.3.7): this network 0/8, loopback 127/8, multicast 224/4, class E and
/// broadcast 240/4. IPv6 (RFC 4291 2.5 and 2.7, RFC 6890): multicast, and what begins with ten zero
/// bytes: ::, ::1, ::a.b.c.d and ::ffff:a.b.c.d; nothing else that is routed does.
template <Family kFamily>
Verdict judge_source(const IpWalk& walk) {
  using enum DropReason;
  constexpr bool kIsV4 = kFamily == Family::ipv4;
  constexpr std::uint8_t kLoopback6[16]{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  constexpr std::uint8_t kZeros[10]{};
  const std::uint8_t first = walk.source[0];
  if (std::memcmp(walk.source, walk.destination, kAddressWidth<kFamily>) == 0)
    return drop<kFamily>(ipv4_source_is_destination, ipv6_source_is_destination);
  if (kIsV4 ? first >> 4 == 14 : first == 0xff)
    return drop<kFamily>(ipv4_source_multicast, ipv6_source_multicast);
  if constexpr (kIsV4) {
    if (first == 127) return drop(ipv4_source_loopback);
    if (first == 0 || first >= 240) return drop(ipv4_martian);
  } else {
    if (std::memcmp(walk.source, kLoopback6, sizeof kLoopback6) == 0)
      return drop(ipv6_source_loopback);
    if (std::memcmp(walk.source, kZeros, sizeof kZeros) == 0) return drop(ipv6_martian);
  }
  return {};
}

/// Destination unreachable, time exceeded, parameter problem; IPv6 also packet too big. Source
/// quench (RFC 6633) and redirects are no answers to a flow.
template <Family kFamily>
bool is_icmp_error(std::uint8_t type) {
  return kFamily == Family::ipv4 ? type == 3 || type == 11 || type == 12 : type >= 1 && type <= 4;
}

template <Family kFamily, WalkOf kWhat>
IpWalk walk_ip(const IpBytes& bytes) {
  if constexpr (kFamily == Family::ipv4)
    return walk_ipv4<kWhat>(bytes);
  else
    return walk_ipv6(bytes, kWhat);
}

/// The flow of an ICMP error is that of the packet it quotes, turned around. `quote`: the bytes
/// behind the ICMP header; `walk`: the packet that carries them.
template <Family kFamily>
Verdict parse_quote(const std::uint8_t* quote, std::size_t available, const IpWalk& walk,
                    ParsedPacket& packet) {
  const IpWalk quoted = walk_ip<kFamily, WalkOf::quote>({quote, available, available});
  const bool names_flow =
      quoted.good && quoted.part != FragmentPart::later &&
      (quoted.protocol == IpProtocol::tcp || quoted.protocol == IpProtocol::udp) &&
      quoted.end - quoted.l4 >= 2 * sizeof(Be16) &&
      // Who complains to the VIP must complain about a packet that the VIP sent.
      std::memcmp(quoted.source, walk.destination, kAddressWidth<kFamily>) == 0;
  if (!names_flow) return drop(DropReason::icmp_bad_quote);

  // TCP and UDP both begin with source port and destination port.
  const Be16 vip_port = overlay<Be16>(quote + quoted.l4);
  const Be16 client_port = overlay<Be16>(quote + quoted.l4 + sizeof(Be16));
  packet.kind = PacketKind::icmp_error;
  set_flow<kFamily>(packet, quoted.destination, quoted.source, client_port, vip_port,
                    quoted.protocol);
  return {};
}

template <Family kFamily>
Verdict drop_l4_truncated() {
  return drop<kFamily>(DropReason::ipv4_l4_truncated, DropReason::ipv6_l4_truncated);
}

template <Family kFamily>
Verdict drop_tcp_header_length() {
  return drop<kFamily>(DropReason::ipv4_tcp_bad_header_length,
                       DropReason::ipv6_tcp_bad_header_length);
}

template <Family kFamily>
Verdict parse_tcp(const std::uint8_t* l4, std::size_t length, ParsedPacket& packet) {
  if (length < sizeof(TcpHeader)) return drop_l4_truncated<kFamily>();
  const auto& header = overlay<TcpHeader>(l4);
  const std::size_t header_length = (header.data_offset >> 4) * std::size_t{4};
  if (header_length < sizeof(TcpHeader) || header_length > length)
    return drop_tcp_header_length<kFamily>();
  packet.kind = PacketKind::tcp;
  packet.tcp_flags = header.flags;
  packet.has_payload = length > header_length;
  return {};
}

/// Bytes behind what the length covers are no fault: UDP may have options there (RFC 9868).
template <Family kFamily>
Verdict parse_udp(const std::uint8_t* l4, std::size_t length, ParsedPacket& packet) {
  if (length < sizeof(UdpHeader)) return drop_l4_truncated<kFamily>();
  // A first fragment's length is that of the whole datagram.
  const std::size_t told = overlay<UdpHeader>(l4).length.host();
  if (told < sizeof(UdpHeader) || (told > length && packet.part == FragmentPart::whole))
    return drop<kFamily>(DropReason::ipv4_udp_bad_length, DropReason::ipv6_udp_bad_length);
  packet.kind = PacketKind::udp;
  packet.has_payload = length > sizeof(UdpHeader);
  return {};
}

template <Family kFamily>
bool is_echo_request(const IcmpHeader& header) {
  return header.type == (kFamily == Family::ipv4 ? 8 : 128) && header.code == 0;
}

template <Family kFamily>
Verdict parse_icmp(const std::uint8_t* l4, std::size_t length, const IpWalk& walk,
                   ParsedPacket& packet) {
  if (length < sizeof(IcmpHeader)) return drop_l4_truncated<kFamily>();
  if (is_echo_request<kFamily>(overlay<IcmpHeader>(l4))) {
    packet.kind = PacketKind::echo_request;
    packet.protocol = walk.protocol;
    return {};
  }
  if (!is_icmp_error<kFamily>(overlay<IcmpHeader>(l4).type))
    return drop(DropReason::icmp_not_routed);
  return parse_quote<kFamily>(l4 + sizeof(IcmpHeader), length - sizeof(IcmpHeader), walk, packet);
}

template <Family kFamily>
constexpr IpProtocol kIcmp = kFamily == Family::ipv4 ? IpProtocol::icmp : IpProtocol::icmpv6;

/// The transport header. `ip`: where `walk` began.
template <Family kFamily>
Verdict parse_transport(const std::uint8_t* ip, const IpWalk& walk, ParsedPacket& packet) {
  constexpr std::size_t kLongestTcpHeader = 60;
  // Behind the bytes that can be read; IPv4 headers are not that long.
  if (walk.readable < walk.end && walk.readable < walk.l4 + kLongestTcpHeader)
    return drop(DropReason::ipv6_bad_extension);
  const std::uint8_t* l4 = ip + walk.l4;
  const std::size_t length = walk.end - walk.l4;
  Verdict verdict;
  if (walk.protocol == IpProtocol::tcp)
    verdict = parse_tcp<kFamily>(l4, length, packet);
  else if (walk.protocol == IpProtocol::udp)
    verdict = parse_udp<kFamily>(l4, length, packet);
  else if (walk.protocol == kIcmp<kFamily>)
    return parse_icmp<kFamily>(l4, walk.readable - walk.l4, walk, packet);
  else
    return drop(DropReason::unknown_protocol);
  if (verdict.decided()) return verdict;

  set_flow<kFamily>(packet, walk.source, walk.destination, overlay<Be16>(l4),
                    overlay<Be16>(l4 + sizeof(Be16)), walk.protocol);
  return {};
}

/// The key stands for the datagram until its first fragment tells the flow: its number is where the
/// ports would be. IPv6's number is unique by itself (RFC 8200 4.5), IPv4's for each protocol (RFC
/// 791 3.2).
template <Family kFamily>
void set_later_fragment(const IpWalk& walk, ParsedPacket& packet) {
  constexpr bool kIsV4 = kFamily == Family::ipv4;
  packet.kind = PacketKind::later_fragment;
  const auto high = Be16::from_host(static_cast<std::uint16_t>(walk.fragment_id >> 16));
  const auto low = Be16::from_host(static_cast<std::uint16_t>(walk.fragment_id));
  set_flow<kFamily>(packet, walk.source, walk.destination, high, low,
                    kIsV4 ? walk.protocol : IpProtocol::fragment);
}

/// What a fragment may not be by itself. Too short a first one, or a second one that begins inside
/// the transport header, is there to get past filters (RFC 1858, RFC 3128, RFC 7112).
template <Family kFamily>
Verdict judge_fragment(const IpWalk& walk) {
  using enum DropReason;
  constexpr bool kIsV4 = kFamily == Family::ipv4;
  const std::size_t length = walk.end - walk.fragmentable;
  // RFC 791 3.2 and RFC 8200 4.5: all but the last are a multiple of 8 bytes long, and together
  // they are no longer than a packet can be.
  const std::size_t most = 65535 - (kIsV4 ? walk.fragmentable : 0);
  if (length == 0 || (walk.more_fragments && length % 8 != 0) ||
      walk.fragment_offset + length > most)
    return drop<kFamily>(ipv4_bad_total_length, ipv6_bad_payload_length);
  // They would not be answered, nor does an error come in fragments (RFC 1812 4.3.2.3, RFC 4443
  // 2.4).
  if (walk.protocol == kIcmp<kFamily>) return drop(icmp_not_routed);
  if (walk.part == FragmentPart::first) return {};
  if (walk.protocol == IpProtocol::tcp && walk.fragment_offset < sizeof(TcpHeader))
    return drop<kFamily>(ipv4_fragment_tiny, ipv6_fragment_tiny);
  const bool flow = walk.protocol == IpProtocol::tcp || walk.protocol == IpProtocol::udp ||
                    (!kIsV4 && is_extension(walk.protocol));
  return flow ? Verdict{} : drop(unknown_protocol);
}

void set_fragment(const IpWalk& walk, ParsedPacket& packet) {
  packet.more_fragments = walk.more_fragments;
  packet.fragment_id = walk.fragment_id;
  packet.fragment_offset = static_cast<std::uint16_t>(walk.fragment_offset);
  packet.fragment_length = static_cast<std::uint16_t>(walk.end - walk.fragmentable);
}

/// A first fragment's transport header is all there or not believed.
template <Family kFamily>
Verdict of_first_fragment(Verdict verdict) {
  const bool cut =
      verdict == drop_l4_truncated<kFamily>() || verdict == drop_tcp_header_length<kFamily>();
  if (!cut) return verdict;
  return drop<kFamily>(DropReason::ipv4_fragment_tiny, DropReason::ipv6_fragment_tiny);
}

template <Family kFamily>
ParseResult parse_ip(const IpBytes& bytes, ParsedPacket& packet) {
  const IpWalk walk = walk_ip<kFamily, WalkOf::packet>(bytes);
  const auto result = [&walk](Verdict verdict) {
    return ParseResult{verdict, walk.addresses_known};
  };
  packet.family = kFamily;
  if (walk.addresses_known) set_vip<kFamily>(packet, walk.destination);
  if (!walk.good) {
    // So that the rest of the datagram need not wait for it.
    if (walk.part == FragmentPart::first) {
      packet.part = walk.part;
      packet.fragment_id = walk.fragment_id;
    }
    return result(drop(walk.fault));
  }
  if (const Verdict source = judge_source<kFamily>(walk); source.decided()) return result(source);
  packet.traffic_class = walk.traffic_class;
  packet.dont_fragment = walk.dont_fragment;
  packet.ip_length = static_cast<std::uint16_t>(walk.length);
  packet.l4_offset = static_cast<std::uint16_t>(packet.l3_offset + walk.l4);
  packet.part = walk.part;
  packet.authenticated = walk.authenticated;
  if (walk.part == FragmentPart::whole)
    return result(parse_transport<kFamily>(bytes.at, walk, packet));

  const Verdict verdict = judge_fragment<kFamily>(walk);
  if (verdict.decided()) return result(verdict);
  set_fragment(walk, packet);
  if (walk.part == FragmentPart::first)
    return result(of_first_fragment<kFamily>(parse_transport<kFamily>(bytes.at, walk, packet)));
  set_later_fragment<kFamily>(walk, packet);
  return result({});
}

EtherType ether_type(Be16 field) { return static_cast<EtherType>(field.host()); }

}  // namespace

ParseResult parse_packet(std::span<const std::uint8_t> frame, std::size_t frame_length,
                         ParsedPacket& packet) {
  new (&packet) ParsedPacket;
  const std::uint8_t* bytes = frame.data();
  const std::size_t length = std::min(frame_length, kMaxFrame);
  const std::size_t size = std::min(frame.size(), length);
  if (size < sizeof(EthernetHeader)) return {drop(DropReason::l2_truncated)};
  std::size_t offset = sizeof(EthernetHeader);
  EtherType type = ether_type(overlay<EthernetHeader>(bytes).ether_type);
  for (int tags = 0; type == EtherType::vlan || type == EtherType::service_vlan; ++tags) {
    if (tags == kMaxVlanTags) return {Verdict::kernel()};
    if (size - offset < sizeof(VlanHeader)) return {drop(DropReason::l2_truncated)};
    type = ether_type(overlay<VlanHeader>(bytes + offset).ether_type);
    offset += sizeof(VlanHeader);
  }
  packet.l3_offset = static_cast<std::uint16_t>(offset);
  const IpBytes ip{bytes + offset, size - offset, length - offset};
  if (type == EtherType::ipv4) return parse_ip<Family::ipv4>(ip, packet);
  if (type == EtherType::ipv6) return parse_ip<Family::ipv6>(ip, packet);
  return {Verdict::kernel()};
}

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
#include "lib/net/reply.h"

#include <algorithm>
#include <cstring>

#include "lib/net/checksum.h"
#include "lib/net/ip_walk.h"

namespace holdfast {

namespace {

constexpr std::uint8_t kHopLimit = 64;
/// Precedence 6, internetwork control (RFC 1812 4.3.2.5): an error gets through where data does
/// not.
constexpr std::uint8_t kErrorClass = 0xc0;
constexpr std::uint8_t kDscpMask = 0xfc;

/// From whom and to whom. Copied out of the received packet, which the answer is written over.
struct Ends {
  IpAddress vip;
  IpAddress client;
};

Ends ends_of(const std::uint8_t* ip, Family family) {
  if (family == Family::ipv4) {
    const auto& header = overlay<Ipv4Header>(ip);
    return {IpAddress::v4(header.destination), IpAddress::v4(header.source)};
  }
  const auto& header = overlay<Ipv6Header>(ip);
  return {IpAddress::v6(header.destination), IpAddress::v6(header.source)};
}

constexpr std::size_t header_length(Family family) {
  return family == Family::ipv4 ? sizeof(Ipv4Header) : sizeof(Ipv6Header);
}

/// What answers differ in. A datagram that is never fragmented needs no identification (RFC 6864).
struct Style {
  IpProtocol protocol;
  std::uint8_t traffic_class;
  Be16 identification{};      // IPv4
  bool dont_fragment = true;  // IPv4
};

/// `length`: of the whole packet, in bytes.
void write_ip(std::uint8_t* at, std::size_t length, const Ends& ends, const Style& style) {
  if (ends.vip.is_v4()) {
    Ipv4Header header{.version_ihl = 0x45,
                      .type_of_service = style.traffic_class,
                      .total_length = Be16::from_host(static_cast<std::uint16_t>(length)),
                      .identification = style.identification,
                      .flags_fragment_offset = Be16::from_host(
                          style.dont_fragment ? Ipv4Header::kDontFragment : std::uint16_t{0}),
                      .time_to_live = kHopLimit,
                      .protocol = style.protocol,
                      .header_checksum = {},
                      .source = ends.vip.as_v4(),
                      .destination = ends.client.as_v4()};
    header.header_checksum = ipv4_header_checksum(header);
    std::memcpy(at, &header, sizeof header);
  } else {
    const Ipv6Header header{
        .version_class_label = Be32::from_host(6u << 28 | std::uint32_t{style.traffic_class} << 20),
        .payload_length = Be16::from_host(static_cast<std::uint16_t>(length - sizeof header)),
        .next_header = style.protocol,
        .hop_limit = kHopLimit,
        .source = ends.vip.bytes(),
        .destination = ends.client.bytes()};
    std::memcpy(at, &header, sizeof header);
  }
}

/// Of a segment whose checksum field is zero.
Be16 transport_checksum(std::span<const std::uint8_t> segment, const Ends& ends,
                        IpProtocol protocol) {
  const bool covers_addresses = protocol != IpProtocol::icmp;
  return checksum_finish(checksum_add(
      segment, covers_addresses ? pseudo_header_sum(ends.vip, ends.client, protocol,
                                                    static_cast<std::uint32_t>(segment.size()))
                                : 0));
}

IpProtocol icmp_of(Family family) {
  return family == Family::ipv4 ? IpProtocol::icmp : IpProtocol::icmpv6;
}

/// `icmp` without its checksum, in front of as much of the packet as may be quoted.
Reply write_error(IcmpHeader icmp, const Received& received) {
  const Family family = received.packet.family;
  const std::size_t headers = header_length(family) + sizeof icmp;
  const std::size_t longest = family == Family::ipv4 ? kMaxIcmpError : kMaxIcmpv6Error;
  const std::size_t quoted =
      std::min({std::size_t{received.packet.ip_length}, received.available, longest - headers});
  const Ends ends = ends_of(received.ip, family);
  std::uint8_t* const message = received.ip - sizeof icmp;
  std::memcpy(message, &icmp, sizeof icmp);
  icmp.checksum = transport_checksum({message, sizeof icmp + quoted}, ends, icmp_of(family));
  std::memcpy(message, &icmp, sizeof icmp);
  std::uint8_t* const ip = received.ip - headers;
  write_ip(ip, headers + quoted, ends, {.protocol = icmp_of(family), .traffic_class = kErrorClass});
  return {ip, static_cast<std::uint16_t>(headers + quoted)};
}

/// RFC 1191 4 and RFC 4443 3.2: the MTU is in the low 16 bits of one, and is 32 bits of the other.
Reply write_too_big(std::uint16_t mtu, const Received& received) {
  const bool v4 = received.packet.family == Family::ipv4;
  return write_error({.type = static_cast<std::uint8_t>(v4 ? 3 : 2),
                      .code = static_cast<std::uint8_t>(v4 ? 4 : 0),
                      .checksum = {},
                      .rest = Be32::from_host(mtu)},
                     received);
}

Reply write_port_unreachable(const Received& received) {
  const bool v4 = received.packet.family == Family::ipv4;
  return write_error({.type = static_cast<std::uint8_t>(v4 ? 3 : 1),
                      .code = static_cast<std::uint8_t>(v4 ? 3 : 4),
                      .checksum = {},
                      .rest = {}},
                     received);
}

/// RFC 9293 3.10.7.1, the state CLOSED.
Reply write_reset(const Received& received) {
  const ParsedPacket& packet = received.packet;
  const std::size_t l4 = std::size_t{packet.l4_offset} - packet.l3_offset;
  const auto& got = overlay<TcpHeader>(received.ip + l4);
  TcpHeader reset{.source_port = got.destination_port,
                  .destination_port = got.source_port,
                  .sequence = {},
                  .acknowledgment = {},
                  .data_offset = sizeof(TcpHeader) / 4 << 4,
                  .flags = TcpHeader::kRst,
                  .window = {},
                  .checksum = {},
                  .urgent_pointer = {}};
  if ((got.flags & TcpHeader::kAck) != 0) {
    reset.sequence = got.acknowledgment;
  } else {
    const std::size_t payload = packet.ip_length - l4 - (got.data_offset >> 4) * std::size_t{4};
    const std::size_t length = payload + ((got.flags & TcpHeader::kSyn) != 0 ? 1 : 0) +
                               ((got.flags & TcpHeader::kFin) != 0 ? 1 : 0);
    reset.acknowledgment =
        Be32::from_host(got.sequence.host() + static_cast<std::uint32_t>(length));
    reset.flags |= TcpHeader::kAck;
  }
  const Ends ends = ends_of(received.ip, packet.family);
  const std::size_t header = header_length(packet.family);
  std::uint8_t* const segment = received.ip + header;
  std::memcpy(segment, &reset, sizeof reset);
  reset.checksum = transport_checksum({segment, sizeof reset}, ends, IpProtocol::tcp);
  std::memcpy(segment, &reset, sizeof reset);
  write_ip(received.ip, header + sizeof reset, ends,
           {.protocol = IpProtocol::tcp,
            .traffic_class = static_cast<std::uint8_t>(packet.traffic_class & kDscpMask)});
  return {received.ip, static_cast<std::uint16_t>(header + sizeof reset)};
}

/// The request's message stays where it is: all of it comes back (RFC 792, RFC 4443 4.2). Its
/// checksum is updated and not made anew, so who damaged the request is not covered up.
Reply write_echo_reply(const Received& received) {
  const ParsedPacket& packet = received.packet;
  const bool v4 = packet.family == Family::ipv4;
  const std::size_t l4 = std::size_t{packet.l4_offset} - packet.l3_offset;
  std::uint8_t* const message = received.ip + l4;
  const std::size_t length = packet.ip_length - l4;
  const auto first_word = [message] { return overlay<Be16>(message); };
  const Be16 before = first_word();
  message[0] = v4 ? 0 : 129;
  Be16 checksum = checksum_update(overlay<IcmpHeader>(message).checksum, before, first_word());
  const std::size_t in_a_row = std::min(length, received.available - l4);
  const auto is_zero = [](std::uint8_t byte) { return byte == 0; };
  std::memset(message + offsetof(IcmpHeader, checksum), 0, sizeof checksum);
  // The one case in which an update ends at the wrong one of ones' complement's two zeros: all that
  // is summed up is zero.
  if (v4 && checksum.raw() == 0 && std::all_of(message, message + in_a_row, is_zero))
    checksum = Be16::from_host(0xffff);
  std::memcpy(message + offsetof(IcmpHeader, checksum), &checksum, sizeof checksum);

  // The request's header may have had options or extensions: there is room for a plain one.
  Style style{.protocol = icmp_of(packet.family),
              .traffic_class = static_cast<std::uint8_t>(packet.traffic_class & kDscpMask)};
  if (v4) {
    // A request that may be fragmented has an identification of its own, as its reply then needs.
    style.identification = overlay<Ipv4Header>(received.ip).identification;
    style.dont_fragment = packet.dont_fragment;
  }
  const Ends ends = ends_of(received.ip, packet.family);
  const std::size_t header = header_length(packet.family);
  std::uint8_t* const ip = message - header;
  write_ip(ip, header + length, ends, style);
  return {ip, static_cast<std::uint16_t>(header + length)};
}

/// Not so: this network, loopback, multicast, reserved and broadcast; in IPv6 multicast and what
/// begins with ten zero bytes, as in lib/net/parse.cc.
bool names_one_host(const IpAddress& source) {
  const auto& bytes = source.bytes();
  if (source.is_v4()) return bytes[0] != 0 && bytes[0] != 127 && bytes[0] < 224;
  return bytes[0] != 0xff &&
         !std::all_of(bytes.begin(), bytes.begin() + 10, [](auto byte) { return byte == 0; });
}

/// Nobody on the way looked at it so far (RFC 1812 4.3.2.7: nothing is said about such a packet).
bool header_is_damaged(const Received& received) {
  if (received.packet.family != Family::ipv4) return false;
  const std::size_t length = overlay<Ipv4Header>(received.ip).header_length();
  return checksum_fold(checksum_add({received.ip, length})) != 0xffff;
}

}  // namespace

IpAddress source_of(const Received& received) {
  return ends_of(received.ip, received.packet.family).client;
}

bool may_answer(AnswerKind kind, const Received& received, Sender sender) {
  const ParsedPacket& packet = received.packet;
  const Ends ends = ends_of(received.ip, packet.family);
  if (sender.to_group || sender.is_vip || ends.client == ends.vip || !names_one_host(ends.client) ||
      header_is_damaged(received))
    return false;
  const bool later_v4 = packet.family == Family::ipv4 && packet.part == FragmentPart::later;
  switch (kind) {
    case AnswerKind::too_big:
    case AnswerKind::port_unreachable:
      return packet.kind != PacketKind::icmp_error && !later_v4;
    case AnswerKind::reset:
      // How much a segment occupies in the sequence is known only of a whole one.
      return packet.part == FragmentPart::whole && (packet.tcp_flags & TcpHeader::kRst) == 0;
    case AnswerKind::echo_reply:
      return packet.part == FragmentPart::whole;
  }
  return false;
}

Reply write_reply(Answer answer, const Received& received) {
  switch (answer.kind) {
    case AnswerKind::echo_reply:
      return write_echo_reply(received);
    case AnswerKind::too_big:
      return write_too_big(answer.mtu, received);
    case AnswerKind::reset:
      return write_reset(received);
    case AnswerKind::port_unreachable:
      return write_port_unreachable(received);
  }
  return {received.ip, 0};
}

}  // namespace holdfast

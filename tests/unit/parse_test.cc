// SPDX-License-Identifier: Apache-2.0
// What parse_packet() finds in good packets, and what it still knows about bad ones. Which fault
// has which reason is in tests/pipeline/drop_reasons_test.cc.
#include "lib/net/parse.h"

#include <algorithm>

#include "tests/catch.h"
#include "tests/dsl/packet.h"

using namespace holdfast;
using namespace holdfast::dsl;

namespace {

/// The only way of parsing in this file: the sanitizers see a read behind the bytes.
struct Parsed : ParsedPacket {
  ParseResult result;
};
Parsed parsed(const Packet& packet) {
  Parsed all;
  const Bytes bytes = packet.bytes();
  all.result = parse_packet(bytes, all);
  return all;
}
Parsed good(const Packet& packet) {
  const Parsed all = parsed(packet);
  REQUIRE_FALSE(all.result.verdict.decided());
  REQUIRE(all.result.vip_known);
  return all;
}

bool same_key(const FlowKey& left, const FlowKey& right) {
  return std::ranges::equal(left.bytes(), right.bytes());
}

FlowKey flow(const Ip& client, std::uint16_t client_port, const Ip& vip, std::uint16_t vip_port,
             IpProtocol protocol) {
  return FlowKey(client, vip, Be16::from_host(client_port), Be16::from_host(vip_port), protocol);
}

const Ip client4 = Ip4{}.src;
const Ip client6 = Ip6{}.src;
const Ip vip4 = Ip4{}.dst;
const Ip vip6 = Ip6{}.dst;

}  // namespace

TEST_CASE("a TCP packet is parsed into its flow and offsets") {
  const Parsed packet = good(Eth{} / Ip4{.dscp = 46, .ecn = 1} /
                             Tcp{.sport = 40000, .dport = 443, .flags = Syn} / payload(5));
  CHECK(packet.kind == PacketKind::tcp);
  CHECK(packet.family == Family::ipv4);
  CHECK(packet.tcp_flags == Syn);
  CHECK(packet.traffic_class == (46 << 2 | 1));
  CHECK(packet.has_payload);
  CHECK(packet.dont_fragment);
  CHECK(packet.l3_offset == 14);
  CHECK(packet.l4_offset == 34);
  CHECK(packet.ip_length == 45);
  CHECK(packet.protocol == IpProtocol::tcp);
  CHECK(packet.service_port.host() == 443);
  CHECK(packet.vip == vip4);
  CHECK(same_key(packet.key, flow(client4, 40000, vip4, 443, IpProtocol::tcp)));
}

TEST_CASE("an IPv6 packet is parsed into its flow and offsets") {
  const Parsed packet = good(Eth{} / Vlan{} / Vlan{} / Ip6{.dscp = 10, .ecn = 3} / HopByHop{} /
                             Udp{.sport = 40000, .dport = 443} / payload(5));
  CHECK(packet.kind == PacketKind::udp);
  CHECK(packet.family == Family::ipv6);
  CHECK(packet.tcp_flags == 0);
  CHECK(packet.traffic_class == (10 << 2 | 3));
  CHECK(packet.has_payload);
  CHECK(packet.dont_fragment);
  CHECK(packet.l3_offset == 22);
  CHECK(packet.l4_offset == 22 + 40 + 8);
  CHECK(packet.ip_length == 40 + 8 + 8 + 5);
  CHECK(packet.protocol == IpProtocol::udp);
  CHECK(packet.vip == vip6);
  CHECK(same_key(packet.key, flow(client6, 40000, vip6, 443, IpProtocol::udp)));
}

TEST_CASE("payload is what lies behind the transport header and inside the IP length") {
  CHECK_FALSE(good(Eth{} / Ip4{} / Tcp{}).has_payload);
  CHECK_FALSE(good((Eth{} / Ip4{} / Tcp{}).padded_to(64)).has_payload);
  CHECK_FALSE(good(Eth{} / Ip4{} / Tcp{.options = Bytes(20, 1)}).has_payload);
  CHECK(good(Eth{} / Ip4{} / Tcp{.options = Bytes(20, 1)} / payload(1)).has_payload);
  CHECK(good(Eth{} / Ip4{.options = Bytes(40, 1)} / Tcp{} / payload(1)).has_payload);
  CHECK_FALSE(good(Eth{} / Ip6{} / Udp{}).has_payload);
  CHECK_FALSE(good((Eth{} / Ip6{} / Udp{}).padded_to(80)).has_payload);
}

TEST_CASE("DF is read from IPv4 and is implied by IPv6") {
  CHECK(good(Eth{} / Ip4{.df = true} / Tcp{}).dont_fragment);
  CHECK_FALSE(good(Eth{} / Ip4{.df = false} / Tcp{}).dont_fragment);
  CHECK(good(Eth{} / Ip6{} / Tcp{}).dont_fragment);
}

TEST_CASE("all TCP flags are kept") {
  for (unsigned flags = 0; flags < 256; ++flags)
    CHECK(good(Eth{} / Ip4{} / Tcp{.flags = static_cast<std::uint8_t>(flags)}).tcp_flags == flags);
}

TEST_CASE("an ICMP error is parsed into the flow of its quote, turned around") {
  const Parsed packet =
      good(Eth{} / Ip4{.src = "198.51.100.254", .dst = vip4} / Icmp{.type = 3, .code = 4} /
           quote(Ip4{.src = vip4, .dst = client4} / Tcp{.sport = 443, .dport = 40000, .flags = Syn},
                 28));
  CHECK(packet.kind == PacketKind::icmp_error);
  CHECK(packet.tcp_flags == 0);
  CHECK_FALSE(packet.has_payload);
  CHECK(packet.protocol == IpProtocol::tcp);
  CHECK(packet.service_port.host() == 443);
  CHECK(packet.vip == vip4);
  CHECK(packet.ip_length == 20 + 8 + 28);
  CHECK(same_key(packet.key, flow(client4, 40000, vip4, 443, IpProtocol::tcp)));
}

TEST_CASE("an ICMPv6 error is parsed into the flow of its quote, turned around") {
  const Parsed packet = good(Eth{} / Ip6{.src = "2001:db8:51::fe", .dst = vip6} / Icmp6{.type = 2} /
                             quote(Ip6{.src = vip6, .dst = client6} / DestinationOptions{} /
                                       Udp{.sport = 443, .dport = 40000},
                                   56));
  CHECK(packet.kind == PacketKind::icmp_error);
  CHECK(packet.protocol == IpProtocol::udp);
  CHECK(same_key(packet.key, flow(client6, 40000, vip6, 443, IpProtocol::udp)));
}

TEST_CASE("an authentication header is walked over and remembered") {
  const Parsed packet = good(Eth{} / Ip6{} / Authentication{} / Tcp{.flags = Syn});
  CHECK(packet.authenticated);
  CHECK(packet.l4_offset == 14 + 40 + 16);
  CHECK_FALSE(good(Eth{} / Ip6{} / DestinationOptions{} / Tcp{}).authenticated);
  CHECK_FALSE(good(Eth{} / Ip4{} / Tcp{}).authenticated);
}

TEST_CASE("an atomic fragment is a whole packet (RFC 6946)") {
  const Parsed packet = good(Eth{} / Ip6{} / Fragment6{.id = 7} / Udp{.dport = 443} / payload(3));
  CHECK(packet.part == FragmentPart::whole);
  CHECK(packet.kind == PacketKind::udp);
  CHECK(packet.service_port.host() == 443);
}

TEST_CASE("a first fragment names its flow, and its place in the datagram") {
  const Parsed v4 = good(Eth{} / Ip4{.id = 0xbeef, .df = false, .more_fragments = true} /
                         Udp{.dport = 443} / payload(1472));
  CHECK(v4.part == FragmentPart::first);
  CHECK(v4.kind == PacketKind::udp);
  CHECK(v4.more_fragments);
  CHECK(v4.fragment_id == 0xbeef);
  CHECK(v4.fragment_offset == 0);
  CHECK(v4.fragment_length == 1480);
  CHECK(same_key(v4.key, flow(client4, 40000, vip4, 443, IpProtocol::udp)));

  const Parsed v6 = good(Eth{} / Ip6{} / HopByHop{} / Fragment6{.more = true, .id = 0xdeadbeef} /
                         DestinationOptions{} / Tcp{.dport = 443} / payload(4));
  CHECK(v6.part == FragmentPart::first);
  CHECK(v6.kind == PacketKind::tcp);
  CHECK(v6.fragment_id == 0xdeadbeef);
  CHECK(v6.fragment_length == 8 + 20 + 4);
  CHECK(v6.l4_offset == 14 + 40 + 8 + 8 + 8);
  CHECK(same_key(v6.key, flow(client6, 40000, vip6, 443, IpProtocol::tcp)));
}

TEST_CASE("a later fragment names its datagram, and its place there") {
  const Parsed v4 =
      good((Eth{} / Ip4{.id = 0xbeef, .fragment_offset = 185, .protocol = 17} / payload(21))
               .padded_to(60));
  CHECK(v4.part == FragmentPart::later);
  CHECK(v4.kind == PacketKind::later_fragment);
  CHECK_FALSE(v4.more_fragments);
  CHECK(v4.fragment_id == 0xbeef);
  CHECK(v4.fragment_offset == 1480);
  CHECK(v4.fragment_length == 21);
  CHECK(v4.vip == vip4);

  const auto later6 = [](std::uint32_t id, std::uint8_t next) {
    return good(Eth{} / Ip6{} /
                Fragment6{.offset = 185, .more = true, .id = id, .next_header = next} /
                payload(24));
  };
  const Parsed v6 = later6(0xdeadbeef, 6);
  CHECK(v6.kind == PacketKind::later_fragment);
  CHECK(v6.more_fragments);
  CHECK(v6.fragment_id == 0xdeadbeef);
  CHECK(v6.fragment_offset == 1480);
  CHECK(v6.fragment_length == 24);
  // Extension headers may begin the part that is fragmented.
  CHECK(later6(1, 60).kind == PacketKind::later_fragment);
  // Another datagram has another key.
  CHECK_FALSE(same_key(v6.key, later6(0xdeadbeee, 6).key));
}

TEST_CASE("an echo request to anyone is known as such") {
  const Parsed v4 = good(Eth{} / Ip4{} / Icmp{.type = 8} / payload(56));
  CHECK(v4.kind == PacketKind::echo_request);
  CHECK(v4.protocol == IpProtocol::icmp);
  const Parsed v6 = good(Eth{} / Ip6{} / HopByHop{} / Icmp6{.type = 128} / payload(56));
  CHECK(v6.kind == PacketKind::echo_request);
  CHECK(v6.protocol == IpProtocol::icmpv6);
  CHECK(parsed(Eth{} / Ip4{} / Icmp{.type = 8, .code = 1}).result.verdict ==
        Verdict::dropped(DropReason::icmp_not_routed));
  CHECK(parsed(Eth{} / Ip4{} / Icmp{.type = 0}).result.verdict ==
        Verdict::dropped(DropReason::icmp_not_routed));
}

TEST_CASE("lengths are judged by the whole frame when it goes on in other buffers") {
  const Bytes jumbo = (Eth{} / Ip6{} / HopByHop{} / Tcp{} / payload(9000)).bytes();
  ParsedPacket packet;
  for (const std::size_t there : {jumbo.size(), std::size_t{1536}, std::size_t{14 + 40 + 8 + 60}}) {
    const std::span head = std::span(jumbo).first(there);
    REQUIRE_FALSE(parse_packet(head, jumbo.size(), packet).verdict.decided());
    CHECK(packet.kind == PacketKind::tcp);
    CHECK(packet.has_payload);
    CHECK(packet.ip_length == 40 + 8 + 20 + 9000);
  }
  CHECK(parse_packet(jumbo, jumbo.size() - 1, packet).verdict ==
        Verdict::dropped(DropReason::ipv6_bad_payload_length));
  // What could be a header lies behind the bytes that are there.
  for (std::size_t there = 14 + 40; there < 14 + 40 + 8 + 60; ++there)
    CHECK(parse_packet(std::span(jumbo).first(there), jumbo.size(), packet).verdict ==
          Verdict::dropped(DropReason::ipv6_bad_extension));
}

TEST_CASE("the destination is known as soon as the addresses are there, whatever else is wrong") {
  CHECK(parsed(Eth{} / Ip4{.ihl = 2} / Tcp{}).result.vip_known);
  CHECK(parsed(Eth{} / Ip4{.ihl = 2} / Tcp{}).vip == vip4);
  CHECK(parsed((Eth{} / Ip6{} / Tcp{}).cut_to(54)).result.vip_known);
  CHECK(parsed((Eth{} / Ip6{} / Tcp{}).cut_to(54)).vip == vip6);
  CHECK(parsed(Eth{} / Ip4{.src = "127.0.0.1"} / Tcp{}).vip == vip4);
  CHECK(parsed(Eth{} / Ip4{} / Icmp{.type = 13}).vip == vip4);
}

TEST_CASE("without a whole IP header of the right version no destination is known") {
  CHECK_FALSE(parsed((Eth{} / Ip4{} / Tcp{}).cut_to(33)).result.vip_known);
  CHECK_FALSE(parsed((Eth{} / Ip6{} / Tcp{}).cut_to(53)).result.vip_known);
  CHECK_FALSE(parsed(Eth{} / Ip4{.version = 6} / Tcp{}).result.vip_known);
  CHECK_FALSE(parsed(Eth{} / Ip6{.version = 4} / Tcp{}).result.vip_known);
  CHECK_FALSE(parsed(Eth{.type = 0x0806} / payload(28)).result.vip_known);
}

TEST_CASE("a frame too long for any buffer is not believed") {
  const Bytes frame = (Eth{} / Ip6{.payload_length = 65535} / Udp{} / payload(65527)).bytes();
  REQUIRE(frame.size() == 14 + 40 + 65535);
  ParsedPacket packet;
  CHECK(parse_packet(frame, packet).verdict ==
        Verdict::dropped(DropReason::ipv6_bad_payload_length));
}

TEST_CASE("nothing of an earlier packet is left in a parsed one") {
  ParsedPacket packet;
  const Bytes first =
      (Eth{} / Ip4{.dscp = 46, .df = false} / Tcp{.flags = Syn} / payload(5)).bytes();
  REQUIRE_FALSE(parse_packet(first, packet).verdict.decided());
  const Bytes second = (Eth{} / Ip6{} / Udp{}).bytes();
  REQUIRE_FALSE(parse_packet(second, packet).verdict.decided());
  CHECK(packet.tcp_flags == 0);
  CHECK(packet.traffic_class == 0);
  CHECK_FALSE(packet.has_payload);
  CHECK(packet.key.bytes().size() == FlowKey::kV6Size);
}

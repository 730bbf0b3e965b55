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

TEST_CASE("the destination is known as soon as the addresses are there, whatever else is wrong") {
  CHECK(parsed(Eth{} / Ip4{.ihl = 2} / Tcp{}).result.vip_known);
  CHECK(parsed(Eth{} / Ip4{.ihl = 2} / Tcp{}).vip == vip4);
  CHECK(parsed((Eth{} / Ip6{} / Tcp{}).cut_to(54)).result.vip_known);
  CHECK(parsed((Eth{} / Ip6{} / Tcp{}).cut_to(54)).vip == vip6);
  CHECK(parsed(Eth{} / Ip4{.src = "127.0.0.1"} / Tcp{}).vip == vip4);
  CHECK(parsed(Eth{} / Ip4{} / Icmp{.type = 8}).vip == vip4);
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

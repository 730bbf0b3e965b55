// SPDX-License-Identifier: Apache-2.0
// Each reason for which a packet can be dropped, and the packets that are dropped for exactly it.
#include <algorithm>
#include <array>
#include <set>

#include "lb/flow/lookup.h"
#include "tests/dsl/expect.h"

using namespace holdfast;
using namespace holdfast::dsl;

namespace {

ServiceSpec web() {
  return service({"203.0.113.10", "203.0.113.11", "2001:db8::10", "2001:db8::11"}, tcp(80))
      .to("192.0.2.21");
}

struct Faulty {
  DropReason reason;
  const char* what;
  Packet packet;
  MbufShape shape{};
};

Packet extensions(int count) {
  Packet chain;
  for (int i = 0; i < count; ++i) chain = chain / DestinationOptions{};
  return chain;
}

/// Packets whose fault is theirs alone, whatever the state of the load balancer.
std::vector<Faulty> faulty_packets() {
  using enum DropReason;
  const Packet tcp4 = Eth{} / Ip4{} / Tcp{};
  const Packet tcp6 = Eth{} / Ip6{} / Tcp{};
  return {
      {l2_truncated, "no bytes at all", Packet(Raw{})},
      {l2_truncated, "13 bytes", tcp4.cut_to(13)},
      {l2_truncated, "cut inside the VLAN tag", (Eth{} / Vlan{} / Ip4{}).cut_to(17)},
      {l2_truncated, "cut inside the second tag", (Eth{} / Vlan{} / Vlan{} / Ip4{}).cut_to(21)},

      {ipv4_truncated, "an EtherType and nothing behind it", tcp4.cut_to(14)},
      {ipv4_truncated, "19 bytes of IPv4", tcp4.cut_to(33)},
      {ipv4_bad_version, "version 5", Eth{} / Ip4{.version = 5} / Tcp{}},
      {ipv4_bad_version, "IPv6 under IPv4's EtherType", Eth{.type = 0x0800} / Ip6{} / Tcp{}},
      {ipv4_bad_header_length, "IHL 4", Eth{} / Ip4{.ihl = 4} / Tcp{}},
      {ipv4_bad_header_length, "IHL 0", Eth{} / Ip4{.ihl = 0} / Tcp{}},
      {ipv4_bad_header_length, "IHL beyond the frame", Eth{} / Ip4{.ihl = 15} / payload(39)},
      {ipv4_bad_total_length, "longer than the frame", tcp4.cut_to(53)},
      {ipv4_bad_total_length, "65535", Eth{} / Ip4{.total_length = 65535} / Tcp{}},
      {ipv4_bad_total_length, "shorter than its header", Eth{} / Ip4{.total_length = 19} / Tcp{}},
      {ipv4_bad_total_length, "ends inside the options",
       Eth{} / Ip4{.options = Bytes(8), .total_length = 24} / Tcp{}},
      {ipv4_bad_total_length, "0, as from an offloading host",
       Eth{} / Ip4{.total_length = 0} / Tcp{}},
      {ipv4_bad_checksum,
       "flagged by the NIC",
       (Eth{} / Ip4{} / Tcp{}).bad_checksum(),
       {.ol_flags = RTE_MBUF_F_RX_IP_CKSUM_BAD}},
      {ipv4_martian, "from 0.0.0.0", Eth{} / Ip4{.src = "0.0.0.0"} / Tcp{}},
      {ipv4_martian, "from 0.1.2.3", Eth{} / Ip4{.src = "0.1.2.3"} / Tcp{}},
      {ipv4_source_loopback, "from loopback", Eth{} / Ip4{.src = "127.0.0.1"} / Tcp{}},
      {ipv4_source_loopback, "from loopback's end", Eth{} / Ip4{.src = "127.255.255.254"} / Tcp{}},
      {ipv4_source_multicast, "from multicast", Eth{} / Ip4{.src = "224.0.0.1"} / Tcp{}},
      {ipv4_source_multicast, "from multicast's end",
       Eth{} / Ip4{.src = "239.255.255.255"} / Tcp{}},
      {ipv4_martian, "from class E", Eth{} / Ip4{.src = "240.0.0.1"} / Tcp{}},
      {ipv4_martian, "from broadcast", Eth{} / Ip4{.src = "255.255.255.255"} / Tcp{}},
      {ipv4_source_is_destination, "from the VIP itself",
       Eth{} / Ip4{.src = "203.0.113.10"} / Tcp{}},
      {ipv4_source_is_vip, "from another VIP",
       Eth{} / Ip4{.src = "203.0.113.11"} / Tcp{.flags = Syn}},
      {ipv4_source_is_vip, "an ICMP error from another VIP",
       Eth{} / Ip4{.src = "203.0.113.11"} / Icmp{} /
           quote(Ip4{.src = "203.0.113.10", .dst = "198.51.100.7"} / Tcp{.sport = 80}, 28)},
      {ipv4_fragment_tiny, "a first one with 8 bytes of TCP (suricata bug 6887)",
       Eth{} / Ip4{.more_fragments = true, .protocol = 6} / payload(8)},
      {ipv4_fragment_tiny, "a first one without all of TCP's options",
       Eth{} / Ip4{.df = false, .more_fragments = true} / Tcp{.data_offset = 7} / payload(4)},
      {ipv4_fragment_tiny, "a later one that begins with TCP's flags (RFC 3128)",
       Eth{} / Ip4{.fragment_offset = 1, .protocol = 6} / payload(64)},
      {ipv4_fragment_tiny, "a later one that begins with TCP's checksum",
       Eth{} / Ip4{.more_fragments = true, .fragment_offset = 2, .protocol = 6} / payload(64)},
      {ipv4_bad_total_length, "a fragment that is no multiple of 8, and not the last",
       Eth{} / Ip4{.more_fragments = true} / Udp{} / payload(63)},
      {ipv4_bad_total_length, "a fragment with nothing in it",
       Eth{} / Ip4{.more_fragments = true, .fragment_offset = 9, .protocol = 17}},
      {ipv4_bad_total_length, "a fragment that ends behind the longest datagram",
       Eth{} / Ip4{.fragment_offset = 0x1fff, .protocol = 17} / payload(8)},
      {unknown_protocol, "a later fragment of GRE",
       Eth{} / Ip4{.fragment_offset = 9, .protocol = 47} / payload(8)},
      {icmp_not_routed, "a fragment of an echo request",
       Eth{} / Ip4{.more_fragments = true} / Icmp{.type = 8} / payload(56)},
      {icmp_not_routed, "a later fragment of ICMP",
       Eth{} / Ip4{.fragment_offset = 9, .protocol = 1} / payload(8)},

      {ipv6_truncated, "an EtherType and nothing behind it", tcp6.cut_to(14)},
      {ipv6_truncated, "39 bytes of IPv6", tcp6.cut_to(53)},
      {ipv6_truncated, "no room for the extension header",
       Eth{} / Ip6{.next_header = 0} / payload(7)},
      {ipv6_truncated, "an extension header that is longer than the packet",
       Eth{} / Ip6{} / HopByHop{.length = 4} / Tcp{}},
      {ipv6_truncated, "an authentication header that is longer than the packet",
       Eth{} / Ip6{} / Authentication{.length = 255} / Tcp{}},
      {ipv6_truncated, "a fragment header that is cut",
       Eth{} / Ip6{.next_header = 44} / payload(7)},
      {ipv6_truncated, "a jumbogram: its length is in an option",
       Eth{} / Ip6{.payload_length = 0} / HopByHop{.options = {0xc2, 4, 0, 1, 0, 0}} / Tcp{}},
      {ipv6_bad_version, "version 4", Eth{} / Ip6{.version = 4} / Tcp{}},
      {ipv6_bad_version, "IPv4 under IPv6's EtherType",
       Eth{.type = 0x86dd} / Ip4{} / Tcp{} / payload(20)},
      {ipv6_bad_payload_length, "longer than the frame", tcp6.cut_to(73)},
      {ipv6_bad_payload_length, "65535", Eth{} / Ip6{.payload_length = 65535} / Tcp{}},
      {ipv6_bad_extension, "nine extension headers", Eth{} / Ip6{} / extensions(9) / Tcp{}},
      {ipv6_bad_extension, "ninety extension headers", Eth{} / Ip6{} / extensions(90) / Tcp{}},
      {ipv6_bad_extension, "hop-by-hop options that are not first",
       Eth{} / Ip6{} / DestinationOptions{} / HopByHop{} / Tcp{}},
      {ipv6_bad_extension, "hop-by-hop options twice",
       Eth{} / Ip6{} / HopByHop{} / HopByHop{} / Tcp{}},
      {ipv6_bad_extension, "a source route with a way still to go (RFC 5095)",
       Eth{} / Ip6{} / Routing{.segments_left = 1} / Tcp{}},
      {ipv6_bad_extension, "an authentication header of length zero",
       Eth{} / Ip6{} / Authentication{.length = 0} / Tcp{}},
      {ipv6_martian, "from the unspecified address", Eth{} / Ip6{.src = "::"} / Tcp{}},
      {ipv6_source_loopback, "from loopback", Eth{} / Ip6{.src = "::1"} / Tcp{}},
      {ipv6_source_multicast, "from multicast", Eth{} / Ip6{.src = "ff02::1"} / Tcp{}},
      {ipv6_martian, "from an IPv4-mapped address",
       Eth{} / Ip6{.src = "::ffff:198.51.100.7"} / Tcp{}},
      {ipv6_source_is_destination, "from the VIP itself",
       Eth{} / Ip6{.src = "2001:db8::10"} / Tcp{}},
      {ipv6_source_is_vip, "from another VIP",
       Eth{} / Ip6{.src = "2001:db8::11"} / Tcp{.flags = Syn}},
      {ipv6_source_is_vip, "an ICMP error from another VIP",
       Eth{} / Ip6{.src = "2001:db8::11"} / Icmp6{} /
           quote(Ip6{.src = "2001:db8::10", .dst = "2001:db8:51::7"} / Tcp{.sport = 80}, 48)},

      {ipv6_fragment_tiny, "a first one with 8 bytes of TCP",
       Eth{} / Ip6{} / Fragment6{.more = true, .next_header = 6} / payload(8)},
      {ipv6_fragment_tiny, "a first one without the header behind the options (RFC 7112)",
       Eth{} / Ip6{} / Fragment6{.more = true} / DestinationOptions{.next_header = 6}},
      {ipv6_fragment_tiny, "a first one that ends inside its options (RFC 7112)",
       Eth{} / Ip6{} / Fragment6{.more = true} / DestinationOptions{.next_header = 6, .length = 1}},
      {ipv6_fragment_tiny, "a later one that begins with TCP's flags (RFC 3128)",
       Eth{} / Ip6{} / Fragment6{.offset = 1, .next_header = 6} / payload(64)},
      {ipv6_bad_payload_length, "a fragment that is no multiple of 8, and not the last",
       Eth{} / Ip6{} / Fragment6{.more = true} / Udp{} / payload(63)},
      {ipv6_bad_payload_length, "a fragment with nothing in it",
       Eth{} / Ip6{} / Fragment6{.offset = 9, .more = true, .next_header = 17}},
      {ipv6_bad_payload_length, "a fragment that ends behind the longest datagram",
       Eth{} / Ip6{} / Fragment6{.offset = 0x1fff, .next_header = 17} / payload(16)},
      {ipv6_bad_extension, "two fragment headers",
       Eth{} / Ip6{} / Fragment6{} / Fragment6{.more = true} / Udp{} / payload(64)},
      {unknown_protocol, "a later fragment of ESP",
       Eth{} / Ip6{} / Fragment6{.offset = 9, .next_header = 50} / payload(8)},
      {icmp_not_routed, "a fragment of an echo request over IPv6",
       Eth{} / Ip6{} / Fragment6{.more = true} / Icmp6{.type = 128} / payload(56)},

      {ipv4_l4_truncated, "19 bytes of TCP", Eth{} / Ip4{.protocol = 6} / payload(19)},
      {ipv4_l4_truncated, "7 bytes of UDP", Eth{} / Ip4{.protocol = 17} / payload(7)},
      {ipv4_l4_truncated, "no bytes of UDP", Eth{} / Ip4{.protocol = 17}},
      {ipv4_l4_truncated, "7 bytes of ICMP", Eth{} / Ip4{.protocol = 1} / payload(7)},
      {ipv6_l4_truncated, "19 bytes of TCP over IPv6", Eth{} / Ip6{.next_header = 6} / payload(19)},
      {ipv6_l4_truncated, "7 bytes of ICMPv6", Eth{} / Ip6{.next_header = 58} / payload(7)},
      {ipv4_l4_truncated, "TCP cut by the IP length, with more bytes in the frame",
       Eth{} / Ip4{.total_length = 39} / Tcp{} / payload(100)},
      {ipv6_l4_truncated, "TCP cut behind options",
       Eth{} / Ip6{} / DestinationOptions{.next_header = 6} / payload(19)},
      {ipv4_tcp_bad_header_length, "data offset 4", Eth{} / Ip4{} / Tcp{.data_offset = 4}},
      {ipv6_tcp_bad_header_length, "data offset 0", Eth{} / Ip6{} / Tcp{.data_offset = 0}},
      {ipv4_tcp_bad_header_length, "data offset beyond the packet",
       (Eth{} / Ip4{} / Tcp{.data_offset = 6}).padded_to(100)},
      {ipv4_udp_bad_length, "a UDP length of 7", Eth{} / Ip4{} / Udp{.length = 7} / payload(9)},
      {ipv4_udp_bad_length, "a UDP length beyond the packet, with more bytes in the frame",
       (Eth{} / Ip4{} / Udp{.length = 18} / payload(9)).padded_to(100)},
      {ipv6_udp_bad_length, "a UDP length of 0", Eth{} / Ip6{} / Udp{.length = 0} / payload(9)},
      {ipv6_udp_bad_length, "a UDP length beyond the packet over IPv6",
       Eth{} / Ip6{} / Udp{.length = 18} / payload(9)},
      {ipv4_udp_bad_length, "a first fragment with a UDP length of 7",
       Eth{} / Ip4{.more_fragments = true} / Udp{.length = 7} / payload(64)},

      {unknown_port, "TCP to port 81", Eth{} / Ip4{} / Tcp{.dport = 81}},
      {unknown_port, "TCP to port 0", Eth{} / Ip6{} / Tcp{.dport = 0}},
      {unknown_port, "UDP to TCP's port", Eth{} / Ip4{} / Udp{.dport = 80}},
      {unknown_protocol, "GRE", Eth{} / Ip4{.protocol = 47} / payload(40)},
      {unknown_protocol, "SCTP", Eth{} / Ip6{.next_header = 132} / payload(40)},
      {unknown_protocol, "IPIP", Eth{} / Ip4{} / Ip4{} / Tcp{}},
      {unknown_protocol, "ESP", Eth{} / Ip6{.next_header = 50} / payload(40)},
      {unknown_protocol, "no next header", Eth{} / Ip6{}},
      {unknown_protocol, "no next header behind options", Eth{} / Ip6{} / HopByHop{}},
      {icmp_not_routed, "echo reply", Eth{} / Ip4{} / Icmp{.type = 0} / payload(56)},
      {icmp_not_routed, "echo reply over IPv6", Eth{} / Ip6{} / Icmp6{.type = 129} / payload(56)},
      {icmp_not_routed, "redirect", Eth{} / Ip4{} / Icmp{.type = 5} / quote(Ip4{} / Tcp{})},
      {icmp_not_routed, "neighbour solicitation for the VIP",
       Eth{} / Ip6{} / Icmp6{.type = 135} / payload(24)},
      {icmp_bad_quote, "an error without context", Eth{} / Ip4{} / Icmp{.type = 3}},
      {icmp_bad_quote, "an error without context over IPv6", Eth{} / Ip6{} / Icmp6{.type = 1}},
      {icmp_unknown_service, "about another port",
       Eth{} / Ip4{} / Icmp{} / quote(Ip4{.src = "203.0.113.10"} / Tcp{.sport = 81}, 28)},

      {multi_segment,
       "a packet in two buffers",
       Eth{} / Ip4{} / Tcp{} / payload(500),
       {.first_segment = 100}},
      {multi_segment,
       "two buffers, the first ends inside the IP header",
       tcp4,
       {.first_segment = 20}},
      {no_headroom, "33 bytes where 34 - 14 + 14 are needed", tcp4, {.headroom = 19}},
  };
}

}  // namespace

TEST_CASE("a faulty packet to a VIP is dropped for exactly its reason") {
  LbUnderTest lb{web()};
  for (const Faulty& faulty : faulty_packets()) {
    INFO(text_of(faulty.reason).name << ": " << faulty.what);
    CHECK(lb.handle(faulty.packet, faulty.shape) == dropped(faulty.reason));
  }
}

TEST_CASE("a faulty packet with a VLAN tag is dropped for the same reason") {
  LbUnderTest lb{web()};
  for (const Faulty& faulty : faulty_packets()) {
    // Damage to the frame as a whole would hit elsewhere with a tag in front.
    const bool whole = faulty.packet.bytes().size() == Packet(faulty.packet.layers()).size();
    if (!whole || faulty.packet.layers().size() < 2 || faulty.shape.first_segment != SIZE_MAX)
      continue;
    auto layers = faulty.packet.layers();
    const auto type = std::get<Eth>(layers[0]).type;
    layers.insert(layers.begin() + 1, Vlan{.id = 99, .type = type});
    std::get<Eth>(layers[0]).type.reset();
    MbufShape shape = faulty.shape;
    if (faulty.reason == DropReason::no_headroom) shape.headroom -= 4;
    INFO(text_of(faulty.reason).name << ": " << faulty.what);
    CHECK(lb.handle(Packet(layers), shape) == dropped(faulty.reason));
  }
}

TEST_CASE("the smallest headroom that is enough is enough") {
  LbUnderTest plain{web()};
  CHECK(plain.handle(Eth{} / Ip4{} / Tcp{}, {.headroom = 20}).kind == Handled::Kind::sent);
  // The tag that came in makes room for four bytes of what goes out.
  CHECK(plain.handle(Eth{} / Vlan{} / Ip4{} / Tcp{}, {.headroom = 16}).kind == Handled::Kind::sent);
  LbUnderTest wide{
      service("203.0.113.10", tcp(80)).to(backend("2001:db8:100::21").over({Hop{.vlan = 5}}))};
  CHECK(wide.handle(Eth{} / Ip4{} / Tcp{}, {.headroom = 44}).kind == Handled::Kind::sent);
  CHECK(wide.handle(Eth{} / Ip4{} / Tcp{}, {.headroom = 43}) == dropped(DropReason::no_headroom));
}

TEST_CASE("eight extension headers are walked") {
  LbUnderTest lb{web()};
  CHECK(lb.handle(Eth{} / Ip6{} / extensions(8) / Tcp{}).kind == Handled::Kind::sent);
}

TEST_CASE("addresses next to the martian ones are good") {
  LbUnderTest lb{web()};
  for (const char* source : {"1.0.0.0", "126.255.255.255", "128.0.0.0", "223.255.255.255",
                             "203.0.113.9", "169.254.1.1", "10.0.0.1"}) {
    CAPTURE(source);
    CHECK(lb.handle(Eth{} / Ip4{.src = source} / Tcp{}).kind == Handled::Kind::sent);
  }
  for (const char* source : {"64:ff9b::1", "0:0:0:0:1::1", "2001:db8::12", "fe80::1", "fd00::1"}) {
    CAPTURE(source);
    CHECK(lb.handle(Eth{} / Ip6{.src = source} / Tcp{}).kind == Handled::Kind::sent);
  }
}

TEST_CASE("a VIP that forged sources name is refused, a flow that was there before goes on") {
  LbUnderTest lb{service("203.0.113.10", tcp(80)).to("192.0.2.21")};
  const Ip4 from_it{.src = "203.0.113.11"};
  CHECK(lb.handle(Eth{} / from_it / Tcp{.flags = Syn}).kind == Handled::Kind::sent);
  lb.service(0).vips.emplace_back("203.0.113.11");
  lb.publish();
  CHECK(lb.handle(Eth{} / from_it / Tcp{.flags = Ack}).kind == Handled::Kind::sent);
  for (const std::uint8_t flags : {Syn, Ack})
    CHECK(lb.handle(Eth{} / from_it / Tcp{.sport = 40001, .flags = flags}) ==
          dropped(DropReason::ipv4_source_is_vip));
  CHECK(lb.flows.table_counters().inserted == 1);

  const FlowTable* const table = &lb.flows.table;
  FlowQuestion question{.protocol = IpProtocol::tcp,
                        .client = from_it.src,
                        .client_port = 40001,
                        .vip = from_it.dst,
                        .vip_port = 80};
  const auto looked_up = [&] {
    return look_up_flow(question, lb.snapshot(), {&table, 1}).workers.at(0).next.dropped;
  };
  CHECK(looked_up() == DropReason::ipv4_source_is_vip);
  question.client_port = 40000;
  CHECK_FALSE(looked_up());
}

TEST_CASE("of a dropped packet the first bytes are kept, as they came") {
  LbUnderTest lb{web()};
  const Packet packet = Eth{} / Vlan{.id = 7} / Ip4{} / Tcp{.dport = 81} / payload(100);
  CHECK_FALSE(lb.drop_sample(DropReason::unknown_port));
  CHECK(lb.handle(packet) == dropped(DropReason::unknown_port));
  const auto sample = lb.drop_sample(DropReason::unknown_port).value();
  const Bytes bytes = packet.bytes();
  CHECK(sample.length == bytes.size());
  CHECK(std::equal(sample.head.begin(), sample.head.end(), bytes.begin()));
  CHECK(sample.at == lb.time);
}

TEST_CASE("a service without a backend that may take the flow drops it") {
  LbUnderTest none{service("203.0.113.10", tcp(80))};
  CHECK(none.handle(Eth{} / Ip4{} / Tcp{.flags = Syn}) == dropped(DropReason::no_backend));
  LbUnderTest all_down{
      service("203.0.113.10", tcp(80)).to(backend("192.0.2.21").being(BackendState::down))};
  CHECK(all_down.handle(Eth{} / Ip4{} / Tcp{.flags = Syn}) == dropped(DropReason::no_backend));
}

TEST_CASE("a backend without a next hop drops what is for it") {
  LbUnderTest lb{service("203.0.113.10", tcp(80)).to(backend("192.0.2.21").over({}))};
  CHECK(lb.handle(Eth{} / Ip4{} / Tcp{.flags = Syn}) == dropped(DropReason::neigh_unresolved));
}

TEST_CASE("too long for the tunnel, down to an MTU smaller than the outer header") {
  for (const std::uint16_t mtu : {std::uint16_t{0}, std::uint16_t{19}, std::uint16_t{59}}) {
    LbUnderTest lb{
        service("203.0.113.10", tcp(80)).to(backend("192.0.2.21").over({Hop{.mtu = mtu}}))};
    CHECK(lb.handle(Eth{} / Ip4{} / Tcp{}) == dropped(DropReason::too_big));
  }
}

TEST_CASE("ICMP errors above their rate are dropped") {
  LbUnderTest lb({web()}, {.icmp_relay_rate = 0});
  const auto error =
      Ip4{} / Icmp{} / quote(Ip4{.src = "203.0.113.10"} / Tcp{.sport = 80, .dport = 40000}, 28);
  CHECK(lb.handle(Eth{} / error) == dropped(DropReason::icmp_rate_limited));
}

TEST_CASE("what the port refuses is dropped, and only that") {
  LbUnderTest lb{web()};
  lb.io.transmit_room[PortNumber{0}] = 3;
  std::vector<Packet> packets(10, Eth{} / Ip4{} / Tcp{});
  const auto handled = lb.handle_all(packets);
  for (std::size_t i = 0; i < handled.size(); ++i) {
    CAPTURE(i);
    if (i < 3)
      CHECK(handled[i].kind == Handled::Kind::sent);
    else
      CHECK(handled[i] == dropped(DropReason::tx_full));
  }
  CHECK(lb.counters().forwarded == 3);
  CHECK(lb.counters().transmitted == 3);
  CHECK(lb.counters_of_backend("192.0.2.21").packets == 3);
}

TEST_CASE("a full port takes nothing from the others") {
  LbUnderTest lb{service("203.0.113.10", tcp(80))
                     .to(backend("192.0.2.21").over({Hop{.port = 0}, Hop{.port = 1}}))};
  lb.io.transmit_room[PortNumber{0}] = 0;
  std::vector<Packet> packets;
  for (std::uint16_t port = 0; port < 32; ++port)
    packets.push_back(Eth{} / Ip4{} / Tcp{.sport = port});
  int sent_on_1 = 0;
  for (const Handled& handled : lb.handle_all(packets)) {
    if (handled.kind == Handled::Kind::sent) {
      CHECK(handled.port == PortNumber{1});
      ++sent_on_1;
    } else {
      CHECK(handled == dropped(DropReason::tx_full));
    }
  }
  CHECK(sent_on_1 > 5);
  CHECK(sent_on_1 < 27);
}

TEST_CASE("no drop reason is without a test") {
  std::set<DropReason> tested;
  for (const Faulty& faulty : faulty_packets()) tested.insert(faulty.reason);
  // By the other tests of this file, to_kernel_test.cc, vip_manners_test.cc, too_big_test.cc and
  // fragments_test.cc.
  using enum DropReason;
  tested.insert({no_backend, neigh_unresolved, too_big, icmp_rate_limited, tx_full});
  tested.insert(no_kernel_path);
  tested.insert({echo_off, answer_rate_limited, answer_forbidden, no_buffers});
  tested.insert({ipv4_fragment_overlap, ipv4_fragment_too_many, ipv4_fragment_no_first,
                 ipv4_fragment_no_room, ipv6_fragment_overlap, ipv6_fragment_too_many,
                 ipv6_fragment_no_first, ipv6_fragment_no_room});
  for (std::size_t i = 0; i < kDropReasonCount; ++i) {
    INFO(kDropReasonTexts[i].name);
    CHECK(tested.count(static_cast<DropReason>(i)) == 1);
  }
}

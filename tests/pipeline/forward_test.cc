// SPDX-License-Identifier: Apache-2.0
// What a client sends is tunnelled to a backend: addresses, lengths, bits, surroundings.
#include <algorithm>
#include <array>

#include "tests/dsl/expect.h"

using namespace holdfast;
using namespace holdfast::dsl;

namespace {

/// A service over both families with one backend.
ServiceSpec web(const char* backend) {
  return service({"203.0.113.10", "2001:db8::10"}, tcp(80)).to(backend);
}

Ip4 outer4() { return {.src = "192.0.2.1", .dst = "192.0.2.21"}; }
/// The label is the flow's; what it must be, the tests of it say.
Ip6 outer6(std::uint32_t label) {
  return {.src = "2001:db8:100::1", .dst = "2001:db8:100::21", .flow_label = label};
}

std::uint32_t flow_label(const Handled& handled) { return layer<Ip6>(handled).flow_label; }

template <class... Values>
constexpr std::array<std::uint8_t, sizeof...(Values)> each(Values... values) {
  return {static_cast<std::uint8_t>(values)...};
}

const Packet syn4 = Ip4{} / Tcp{.flags = Syn};
const Packet syn6 = Ip6{} / Tcp{.flags = Syn};

}  // namespace

TEST_CASE("a SYN is tunnelled to the only backend") {
  LbUnderTest lb{service("203.0.113.10", tcp(80)).via(ipip("192.0.2.1")).to("192.0.2.21")};
  const auto syn = Ip4{.src = "198.51.100.7", .dst = "203.0.113.10"} /
                   Tcp{.sport = 40000, .dport = 80, .flags = Syn};
  REQUIRE(lb.handle(Eth{} / syn) ==
          sent(from_lb / Ip4{.src = "192.0.2.1", .dst = "192.0.2.21"} / syn));
}

TEST_CASE("all four mixes of families: IPv4 in IPv4") {
  LbUnderTest lb{web("192.0.2.21")};
  CHECK(lb.handle(Eth{} / syn4) == sent(from_lb / outer4() / syn4));
}

TEST_CASE("all four mixes of families: IPv6 in IPv4") {
  LbUnderTest lb{web("192.0.2.21")};
  CHECK(lb.handle(Eth{} / syn6) == sent(from_lb / outer4() / syn6));
}

TEST_CASE("all four mixes of families: IPv4 in IPv6") {
  LbUnderTest lb{web("2001:db8:100::21")};
  const Handled handled = lb.handle(Eth{} / syn4);
  CHECK(handled == sent(from_lb / outer6(flow_label(handled)) / syn4));
}

TEST_CASE("all four mixes of families: IPv6 in IPv6") {
  LbUnderTest lb{web("2001:db8:100::21")};
  const Handled handled = lb.handle(Eth{} / syn6);
  CHECK(handled == sent(from_lb / outer6(flow_label(handled)) / syn6));
}

TEST_CASE("the outer header on the wire, byte for byte") {
  LbUnderTest lb{web("192.0.2.21")};
  const Handled handled = lb.handle(Eth{} / syn4);
  REQUIRE(handled.kind == Handled::Kind::sent);
  REQUIRE(handled.frame.size() == 14 + 20 + 40);
  // The inner packet has 20 + 20 bytes; sum of the words but the checksum: 0x4500 + 0x003c +
  // 0x4000 + 0x4004 + 0xc000 + 0x0201 + 0xc000 + 0x0215 = 0x24956 -> 0x4958, complement 0xb6a7.
  CHECK(hex(std::span(handled.frame).subspan(14, 20)) ==
        "4500003c000040004004b6a7c0000201c0000215");
}

TEST_CASE("UDP is tunnelled like TCP") {
  LbUnderTest lb{service({"203.0.113.10", "2001:db8::10"}, udp(443)).to("192.0.2.21")};
  const auto datagram4 = Ip4{} / Udp{.dport = 443} / payload(100);
  const auto datagram6 = Ip6{} / Udp{.dport = 443} / payload(100);
  CHECK(lb.handle(Eth{} / datagram4) == sent(from_lb / outer4() / datagram4));
  CHECK(lb.handle(Eth{} / datagram6) == sent(from_lb / outer4() / datagram6));
}

TEST_CASE("a UDP checksum of zero stays zero") {
  LbUnderTest lb{service("203.0.113.10", udp(443)).to("192.0.2.21")};
  const auto datagram = Ip4{} / Udp{.dport = 443, .checksum = 0} / payload(10);
  CHECK(lb.handle(Eth{} / datagram) == sent(from_lb / outer4() / datagram));
}

TEST_CASE("ECN and DSCP are copied to the outer header, and the inner one is left alone") {
  LbUnderTest over4{web("192.0.2.21")};
  LbUnderTest over6{web("2001:db8:100::21")};
  for (const std::uint8_t dscp : each(0, 1, 46, 63))
    for (const std::uint8_t ecn : each(0, 1, 2, 3)) {
      CAPTURE(int{dscp}, int{ecn});
      const auto inner4 = Ip4{.dscp = dscp, .ecn = ecn} / Tcp{};
      const auto inner6 = Ip6{.dscp = dscp, .ecn = ecn} / Tcp{};
      Ip4 wide4 = outer4();
      wide4.dscp = dscp;
      wide4.ecn = ecn;
      CHECK(over4.handle(Eth{} / inner4) == sent(from_lb / wide4 / inner4));
      CHECK(over4.handle(Eth{} / inner6) == sent(from_lb / wide4 / inner6));
      const Handled handled = over6.handle(Eth{} / inner6);
      Ip6 wide6 = outer6(flow_label(handled));
      wide6.dscp = dscp;
      wide6.ecn = ecn;
      CHECK(handled == sent(from_lb / wide6 / inner6));
    }
}

TEST_CASE("the outer header has DF, whether the inner one has it or not") {
  LbUnderTest lb{web("192.0.2.21")};
  const auto may_be_fragmented = Ip4{.df = false} / Tcp{};
  REQUIRE(outer4().df);
  CHECK(lb.handle(Eth{} / may_be_fragmented) == sent(from_lb / outer4() / may_be_fragmented));
}

TEST_CASE("the outer TTL is 64 and the inner one is left alone, however small") {
  LbUnderTest lb{web("192.0.2.21")};
  REQUIRE(outer4().ttl == 64);
  for (const std::uint8_t ttl : each(0, 1, 2, 64, 255)) {
    CAPTURE(int{ttl});
    const auto inner4 = Ip4{.ttl = ttl} / Tcp{};
    const auto inner6 = Ip6{.hop_limit = ttl} / Tcp{};
    CHECK(lb.handle(Eth{} / inner4) == sent(from_lb / outer4() / inner4));
    CHECK(lb.handle(Eth{} / inner6) == sent(from_lb / outer4() / inner6));
  }
}

TEST_CASE("the flow label is the same for all packets of a flow and spreads over flows") {
  LbUnderTest lb{web("2001:db8:100::21")};
  std::vector<std::uint32_t> labels;
  for (std::uint16_t port = 1000; port < 1100; ++port) {
    const auto label = flow_label(lb.handle(Eth{} / Ip4{} / Tcp{.sport = port, .flags = Syn}));
    CHECK(label <= 0xfffff);
    CHECK(flow_label(lb.handle(Eth{} / Ip4{} / Tcp{.sport = port} / payload(9))) == label);
    labels.push_back(label);
  }
  std::sort(labels.begin(), labels.end());
  labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
  // 100 draws out of 2^20: two equal ones are rare, a dozen impossible.
  CHECK(labels.size() > 95);
}

TEST_CASE("Ethernet padding is not tunnelled") {
  LbUnderTest lb{web("192.0.2.21")};
  // 54 bytes, padded to Ethernet's 60.
  CHECK(lb.handle((Eth{} / syn4).padded_to(60)) == sent(from_lb / outer4() / syn4));
  CHECK(lb.handle((Eth{} / syn6).padded_to(200)) == sent(from_lb / outer4() / syn6));
}

TEST_CASE("VLAN tags that came in are not sent on") {
  LbUnderTest lb{web("192.0.2.21")};
  const auto expected = sent(from_lb / outer4() / syn4);
  CHECK(lb.handle(Eth{} / Vlan{.id = 201} / syn4) == expected);
  CHECK(lb.handle(Eth{} / Vlan{.id = 201, .priority = 6, .tpid = 0x88a8} / syn4) == expected);
  CHECK(lb.handle(Eth{} / Vlan{.id = 9, .tpid = 0x88a8} / Vlan{.id = 201} / syn4) == expected);
  CHECK(lb.handle((Eth{} / Vlan{.id = 9} / Vlan{.id = 201} / syn4).padded_to(64)) == expected);
}

TEST_CASE("a tag that the NIC took out of the frame is not sent on either") {
  LbUnderTest lb{web("192.0.2.21")};
  const MbufShape stripped{.ol_flags = RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED,
                           .vlan_tci = 201};
  CHECK(lb.handle(Eth{} / syn4, stripped) == sent(from_lb / outer4() / syn4));
  CHECK(lb.handle(Eth{} / Vlan{.id = 7} / syn4, stripped) == sent(from_lb / outer4() / syn4));
}

TEST_CASE("the tag that leaves is the next hop's") {
  LbUnderTest lb{
      service("203.0.113.10", tcp(80)).to(backend("192.0.2.21").over({Hop{.vlan = 300}}))};
  const auto expected = sent(from_lb / Vlan{.id = 300} / outer4() / syn4);
  CHECK(lb.handle(Eth{} / syn4) == expected);
  CHECK(lb.handle(Eth{} / Vlan{.id = 201} / syn4) == expected);
}

TEST_CASE("MACs and port are the next hop's") {
  const Hop hop{.port = 2, .src = "02:00:00:00:02:01", .dst = "02:00:00:00:02:fe"};
  LbUnderTest lb{service("203.0.113.10", tcp(80)).to(backend("192.0.2.21").over({hop}))};
  CHECK(lb.handle(Eth{} / syn4) ==
        sent(Eth{.src = "02:00:00:00:02:01", .dst = "02:00:00:00:02:fe"} / outer4() / syn4, 2));
}

TEST_CASE("several next hops share the flows, and a flow keeps its own") {
  LbUnderTest lb{
      service("203.0.113.10", tcp(80))
          .to(backend("192.0.2.21").over({Hop{.port = 0}, Hop{.port = 1}, Hop{.port = 2}}))};
  std::array<int, 3> flows_on{};
  for (std::uint16_t port = 1000; port < 1300; ++port) {
    const Handled first = lb.handle(Eth{} / Ip4{} / Tcp{.sport = port, .flags = Syn});
    REQUIRE(first.kind == Handled::Kind::sent);
    ++flows_on.at(index_of(first.port));
    CHECK(lb.handle(Eth{} / Ip4{} / Tcp{.sport = port}).port == first.port);
  }
  // 300 flows over 3: 100 each, standard deviation 8.
  for (const int flows : flows_on) CHECK((flows > 60 && flows < 140));
}

TEST_CASE("IPv4 options are carried along") {
  LbUnderTest lb{web("192.0.2.21")};
  // Record route of the maximal length: 40 bytes of options, IHL 15.
  Bytes record_route(40);
  record_route[0] = 7;
  record_route[1] = 39;
  record_route[2] = 4;
  for (const Bytes& options : {Bytes{1, 1, 1, 0}, Bytes{0x94, 4, 0, 0}, record_route}) {
    const auto packet = Ip4{.options = options} / Tcp{.flags = Syn};
    CHECK(lb.handle(Eth{} / packet) == sent(from_lb / outer4() / packet));
  }
}

TEST_CASE("IPv6 extension headers are carried along, alone and in chains") {
  LbUnderTest lb{web("192.0.2.21")};
  const Packet tcp_syn = Tcp{.flags = Syn};
  for (const Packet& extensions :
       {Packet(HopByHop{}), Packet(DestinationOptions{}), Packet(Routing{}),
        Packet(Authentication{}), Packet(Fragment6{.id = 77}),
        HopByHop{} / DestinationOptions{} / Routing{} / Authentication{} / DestinationOptions{},
        Packet(HopByHop{.options = Bytes(254)}), HopByHop{} / Fragment6{} / DestinationOptions{}}) {
    const auto packet = Ip6{} / extensions / tcp_syn;
    CHECK(lb.handle(Eth{} / packet) == sent(from_lb / outer4() / packet));
  }
}

TEST_CASE("the same flow goes to the same backend with options, extensions and tags or without") {
  LbUnderTest lb{service({"203.0.113.10", "2001:db8::10"}, tcp(80))
                     .to("192.0.2.21")
                     .to("192.0.2.22")
                     .to("192.0.2.23")
                     .to("192.0.2.24")};
  const auto backend_of = [&](const Packet& packet) {
    const Handled handled = lb.handle(packet);
    REQUIRE(handled.kind == Handled::Kind::sent);
    return layer<Ip4>(handled).dst.text();
  };
  for (std::uint16_t port = 1; port < 50; ++port) {
    const auto plain4 = backend_of(Eth{} / Ip4{} / Tcp{.sport = port});
    CHECK(backend_of(Eth{} / Ip4{.options = {1, 1, 1, 0}} / Tcp{.sport = port}) == plain4);
    CHECK(backend_of(Eth{} / Vlan{} / Ip4{.ecn = 3, .ttl = 3} / Tcp{.sport = port}) == plain4);
    const auto plain6 = backend_of(Eth{} / Ip6{} / Tcp{.sport = port});
    CHECK(backend_of(Eth{} / Ip6{} / HopByHop{} / Tcp{.sport = port}) == plain6);
    CHECK(backend_of(Eth{} / Ip6{.flow_label = 5} / Fragment6{} / Tcp{.sport = port}) == plain6);
  }
}

TEST_CASE("the longest packet that the tunnel carries goes, one byte more does not") {
  for (const std::uint16_t mtu : {std::uint16_t{1500}, std::uint16_t{1600}, std::uint16_t{9000}}) {
    CAPTURE(mtu);
    LbUnderTest over4{
        service("203.0.113.10", tcp(80)).to(backend("192.0.2.21").over({Hop{.mtu = mtu}}))};
    const auto fits4 = Ip4{} / Tcp{} / payload(mtu - 20u - 40u);
    const auto too_long4 = Ip4{} / Tcp{} / payload(mtu - 20u - 40u + 1);
    CHECK(over4.handle(Eth{} / fits4) == sent(from_lb / outer4() / fits4));
    CHECK(over4.handle(Eth{} / too_long4).kind == Handled::Kind::answered);

    LbUnderTest over6{
        service("203.0.113.10", tcp(80)).to(backend("2001:db8:100::21").over({Hop{.mtu = mtu}}))};
    const auto fits6 = Ip4{} / Tcp{} / payload(mtu - 40u - 40u);
    const auto too_long6 = Ip4{} / Tcp{} / payload(mtu - 40u - 40u + 1);
    const Handled handled = over6.handle(Eth{} / fits6);
    CHECK(handled == sent(from_lb / outer6(flow_label(handled)) / fits6));
    CHECK(over6.handle(Eth{} / too_long6).kind == Handled::Kind::answered);
  }
}

TEST_CASE("a VLAN tag does not count against the MTU") {
  LbUnderTest lb{service("203.0.113.10", tcp(80))
                     .to(backend("192.0.2.21").over({Hop{.vlan = 5, .mtu = 1500}}))};
  const auto fits = Ip4{} / Tcp{} / payload(1500 - 20 - 40);
  CHECK(lb.handle(Eth{} / Vlan{} / fits) == sent(from_lb / Vlan{.id = 5} / outer4() / fits));
}

TEST_CASE("the shortest packets are carried") {
  LbUnderTest lb{service({"203.0.113.10", "2001:db8::10"}, udp(443)).to("192.0.2.21")};
  const auto empty4 = Ip4{} / Udp{};
  const auto empty6 = Ip6{} / Udp{};
  CHECK(lb.handle(Eth{} / empty4) == sent(from_lb / outer4() / empty4));
  CHECK(lb.handle((Eth{} / empty4).padded_to(60)) == sent(from_lb / outer4() / empty4));
  CHECK(lb.handle(Eth{} / empty6) == sent(from_lb / outer4() / empty6));
}

TEST_CASE("a wrong IPv4 header checksum that the NIC does not flag is left to the backend") {
  LbUnderTest lb{web("192.0.2.21")};
  const auto wrong = (Ip4{} / Tcp{}).bad_checksum();
  CHECK(lb.handle(Eth{} / wrong) == sent(from_lb / outer4() / wrong));
}

TEST_CASE("several bursts of packets leave in the order in which they came") {
  // LbUnderTest itself requires that the order of departure on a port is the order of arrival.
  LbUnderTest lb{web("192.0.2.21")};
  std::vector<Packet> packets;
  for (std::uint16_t i = 0; i < 100; ++i)
    packets.push_back(Eth{} / Ip4{} / Tcp{.seq = i} / payload(i));
  const auto handled = lb.handle_all(packets);
  REQUIRE(handled.size() == packets.size());
  for (std::size_t i = 0; i < packets.size(); ++i)
    CHECK(handled[i].frame.size() == packets[i].size() + 20);
}

TEST_CASE("what was forwarded is counted for the service and the backend, in inner bytes") {
  LbUnderTest lb{web("192.0.2.21")};
  const std::size_t frame = (Eth{} / syn4).size();
  for (int i = 0; i < 3; ++i)
    REQUIRE(lb.handle((Eth{} / syn4).padded_to(60)).port == PortNumber{0});
  const PacketCounters counters = lb.counters();
  CHECK(counters.received == 3);
  CHECK(counters.received_bytes == 3 * 60);
  CHECK(counters.forwarded == 3);
  CHECK(counters.forwarded_bytes == 3 * (frame + 20));
  CHECK(counters.transmitted == 3);
  CHECK(lb.counters_of_backend("192.0.2.21").packets == 3);
  CHECK(lb.counters_of_backend("192.0.2.21").bytes == 3 * 40);
  CHECK(lb.counters_of_service(0).packets == 3);
  CHECK(lb.counters_of_service(0).bytes == 3 * 40);
}

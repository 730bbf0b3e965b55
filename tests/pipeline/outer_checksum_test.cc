// SPDX-License-Identifier: Apache-2.0
// The UDP checksum of GUE over IPv6: whichever way it is found, it must be that of the bytes. The
// other opinion is the DSL's, which sums them all.
#include <algorithm>
#include <cstring>

#include "lb/encap/outer_udp.h"
#include "tests/dsl/expect.h"

using namespace holdfast;
using namespace holdfast::dsl;

namespace {

ServiceSpec to_v6(const TunnelSpec& spec, Ports ports) {
  return service({"203.0.113.10", "2001:db8::10"}, ports).via(spec).to("2001:db8:100::21");
}

constexpr std::size_t kHeaders = 14 + 40 + 8;  // Ethernet, IPv6, UDP

/// The inner packet is unchanged, and the outer checksum is the one that the DSL computes.
void check_outer_sum(LbUnderTest& lb, const Packet& inner) {
  const Handled handled = lb.handle(Eth{} / inner);
  REQUIRE(handled.kind == Handled::Kind::sent);
  const Bytes inside = inner.bytes();
  REQUIRE(handled.frame.size() >= kHeaders + inside.size());
  CHECK(std::equal(inside.rbegin(), inside.rend(), handled.frame.rbegin()));
  Udp udp = layer<Udp>(handled);
  udp.checksum.reset();
  const Bytes behind(handled.frame.begin() + kHeaders, handled.frame.end());
  const Packet expected = layer<Eth>(handled) / layer<Ip6>(handled) / udp / Raw{behind};
  CHECK(handled == sent(expected));
}

std::uint16_t outer_checksum(const Handled& handled) {
  return layer<Udp>(handled).checksum.value();
}

}  // namespace

TEST_CASE("of whole TCP packets of both families and of all lengths, odd ones too") {
  for (const TunnelSpec& spec : {gue(), gue0()}) {
    LbUnderTest lb{to_v6(spec, tcp(80))};
    for (std::size_t size = 0; size < 70; ++size) {
      CAPTURE(size, name_of(spec.encapsulation));
      check_outer_sum(lb, Ip4{} / Tcp{} / payload(size));
      check_outer_sum(lb, Ip6{} / Tcp{.flags = Ack | Psh} / payload(size));
      check_outer_sum(lb, Ip4{} / Tcp{.options = {2, 4, 5, 180}} / payload(size));
    }
    check_outer_sum(lb, Ip4{} / Tcp{} / payload(1400));
    check_outer_sum(lb, Ip6{.dscp = 46, .ecn = 1, .flow_label = 0x54321} / Tcp{} / payload(1399));
  }
}

TEST_CASE("of whole UDP packets, with a checksum and without one") {
  for (const TunnelSpec& spec : {gue(), gue0()}) {
    LbUnderTest lb{to_v6(spec, udp_any())};
    for (std::size_t size = 0; size < 70; ++size) {
      CAPTURE(size, name_of(spec.encapsulation));
      check_outer_sum(lb, Ip4{} / Udp{} / payload(size));
      check_outer_sum(lb, Ip6{} / Udp{} / payload(size));
      check_outer_sum(lb, Ip4{} / Udp{.checksum = 0} / payload(size));
    }
  }
}

TEST_CASE("of a UDP packet whose own length ends before the IP packet does") {
  LbUnderTest lb{to_v6(gue(), udp_any())};
  // What is behind its end is not covered by its checksum: it would be missing in the outer one.
  const Packet shorter = Ip4{} / Udp{.length = 12} / payload(30);
  if (lb.handle(Eth{} / shorter).kind == Handled::Kind::sent) check_outer_sum(lb, shorter);
}

TEST_CASE("of packets with options and extension headers") {
  LbUnderTest lb{to_v6(gue(), tcp(80))};
  for (const std::size_t size : {0u, 1u, 33u}) {
    check_outer_sum(lb, Ip4{.options = {1, 1, 1, 0}} / Tcp{} / payload(size));
    check_outer_sum(lb, Ip6{} / HopByHop{} / Tcp{} / payload(size));
    check_outer_sum(lb, Ip6{} / Routing{} / DestinationOptions{} / Tcp{} / payload(size));
    check_outer_sum(lb, Ip6{} / Authentication{} / Tcp{} / payload(size));
  }
}

TEST_CASE("of ICMP errors") {
  LbUnderTest lb{to_v6(gue(), tcp(80))};
  const Packet reply4 = Ip4{.src = "203.0.113.10", .dst = "198.51.100.7"} /
                        Tcp{.sport = 80, .dport = 40000} / payload(1000);
  const Packet reply6 = Ip6{.src = "2001:db8::10", .dst = "2001:db8:51::7"} /
                        Tcp{.sport = 80, .dport = 40000} / payload(1000);
  for (const std::size_t quoted : {28u, 41u, 500u}) {
    check_outer_sum(
        lb, Ip4{.src = "198.51.100.254"} / Icmp{.code = 4, .rest = 1400} / quote(reply4, quoted));
    check_outer_sum(lb, Ip6{.src = "2001:db8:51::fe"} / Icmp6{.type = 2, .rest = 1400} /
                            quote(reply6, quoted + 20));
  }
}

TEST_CASE("an outer checksum that would be zero is all ones") {
  // Of 65536 sequence numbers one makes it zero: each changes the sum by one.
  LbUnderTest lb{to_v6(gue(), udp_any())};
  bool met = false;
  for (std::uint32_t word = 0; word < 65536 && !met; ++word) {
    // Without an inner checksum nothing makes up for the change.
    const Packet inner =
        Ip4{} / Udp{.checksum = 0} /
        Raw{{static_cast<std::uint8_t>(word >> 8), static_cast<std::uint8_t>(word)}};
    const Handled handled = lb.handle(Eth{} / inner);
    // The outer UDP header's checksum: behind Ethernet, IPv6 and six bytes of it.
    const auto* at = handled.frame.data() + 14 + 40 + 6;
    REQUIRE((at[0] != 0 || at[1] != 0));
    met = at[0] == 0xff && at[1] == 0xff;
    if (met) check_outer_sum(lb, inner);
  }
  CHECK(met);
}

TEST_CASE(
    "of a packet whose own checksum is wrong it is wrong by as much: the payload is not read") {
  LbUnderTest lb{to_v6(gue(), tcp(80))};
  const Packet good = Ip4{} / Tcp{} / payload(100);
  const Packet bad = Ip4{} / Tcp{.checksum = 0x1234} / payload(100);
  const auto right = outer_checksum(lb.handle(Eth{} / good));
  CHECK(outer_checksum(lb.handle(Eth{} / bad)) == right);
}

TEST_CASE("it is zero where the pool says so, and over IPv4") {
  TunnelSpec off = gue();
  off.udp6_checksum = false;
  LbUnderTest without{to_v6(off, tcp(80))};
  CHECK(outer_checksum(without.handle(Eth{} / Ip4{} / Tcp{})) == 0);
  LbUnderTest over4{service("203.0.113.10", tcp(80)).via(gue()).to("192.0.2.21")};
  CHECK(outer_checksum(over4.handle(Eth{} / Ip4{} / Tcp{})) == 0);
}

TEST_CASE("an inner UDP checksum of zero stays zero") {
  for (const char* backend : {"192.0.2.21", "2001:db8:100::21"}) {
    LbUnderTest lb{service("203.0.113.10", udp(443)).via(gue()).to(backend)};
    const Packet inner = Ip4{} / Udp{.checksum = 0} / payload(10);
    const Handled handled = lb.handle(Eth{} / inner);
    const Bytes inside = inner.bytes();
    CHECK(std::equal(inside.rbegin(), inside.rend(), handled.frame.rbegin()));
  }
}

TEST_CASE("a port that sums gets the pseudo header's sum and all it must know, and sums right") {
  for (const TunnelSpec& spec : {gue(), gue0()})
    for (const std::uint16_t vlan : {std::uint16_t{0}, std::uint16_t{300}}) {
      ServiceSpec by_port = to_v6(spec, udp_any());
      by_port.backends[0].hops = {Hop{.vlan = vlan, .sums_udp = true}};
      ServiceSpec by_us = to_v6(spec, udp_any());
      by_us.backends[0].hops = {Hop{.vlan = vlan}};
      LbUnderTest offloading{by_port};
      LbUnderTest summing{by_us};
      for (const Packet& inner :
           {Packet(Ip4{} / Udp{} / payload(100)), Packet(Ip4{} / Udp{.checksum = 0} / payload(33)),
            Packet(Ip6{} / Udp{} / payload(1201)), Packet(Ip6{} / HopByHop{} / Udp{})}) {
        const auto filled = offloading.io.checksums_filled;
        // The test's port does as a NIC would, by what the mbuf says.
        CHECK(offloading.handle(Eth{} / inner) == summing.handle(Eth{} / inner));
        CHECK(offloading.io.checksums_filled == filled + 1);
      }
      CHECK(summing.io.checksums_filled == 0);
    }
}

TEST_CASE("a port that sums is asked for nothing else") {
  for (const TunnelSpec& spec : {ipip(), gre(), gue(), gue0()}) {
    const bool v6_sum = uses_udp(spec.encapsulation);
    for (const char* backend : {"192.0.2.21", "2001:db8:100::21"}) {
      LbUnderTest lb{service("203.0.113.10", tcp(80))
                         .via(spec)
                         .to(dsl::backend(backend).over({Hop{.sums_udp = true}}))};
      REQUIRE(lb.handle(Eth{} / Ip4{} / Tcp{}).kind == Handled::Kind::sent);
      CHECK(lb.io.checksums_filled == (v6_sum && !Ip(backend).is_v4() ? 1 : 0));
    }
  }
}

TEST_CASE("over several buffers, cut anywhere, it is that of one") {
  const Packet inner = Ip4{} / Udp{.checksum = 0} / payload(53);
  Bytes frame = (Eth{} / Ip6{} / Udp{.dport = 6080} / inner).bytes();
  ParsedPacket packet;
  packet.kind = PacketKind::udp;
  packet.l3_offset = 14;
  packet.l4_offset = 34;
  packet.ip_length = static_cast<std::uint16_t>(inner.size());
  const auto checksum_of = [&](rte_mbuf& mbuf) {
    // The field is zero while it is found.
    auto* ip = rte_pktmbuf_mtod(&mbuf, std::uint8_t*) + 14;
    const std::uint16_t zero = 0;
    std::memcpy(ip + 46, &zero, 2);
    const Backend to{};
    return outer_udp6_checksum(ip, {.backend = to, .packet = packet, .mbuf = mbuf}, 0).host();
  };
  rte_mbuf* whole = make_mbuf(frame);
  const auto expected = checksum_of(*whole);
  free_mbuf(whole);
  CHECK(expected == frame[60] * 256 + frame[61]);
  // The headers must be in the first one; the rest goes to two more.
  for (std::size_t first = 62; first < frame.size(); ++first)
    for (std::size_t second = first; second < frame.size(); ++second) {
      rte_mbuf* mbuf = make_mbuf(std::span(frame).first(second), {.first_segment = first});
      rte_mbuf* last = mbuf;
      while (last->next != nullptr) last = last->next;
      last->next = make_mbuf(std::span(frame).subspan(second));
      mbuf->nb_segs = static_cast<std::uint16_t>(mbuf->nb_segs + 1);
      mbuf->pkt_len += last->next->pkt_len;
      if (checksum_of(*mbuf) != expected) FAIL("cut at " << first << " and " << second);
      free_mbuf(mbuf);
    }
}

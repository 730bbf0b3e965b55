// SPDX-License-Identifier: Apache-2.0
// Each encapsulation in each mix of families: what stands around the client's packet, and what it
// is made of. (What holds for all of them alike, such as tags and padding, is in forward_test.cc.)
#include <algorithm>
#include <set>

#include "tests/dsl/expect.h"

using namespace holdfast;
using namespace holdfast::dsl;

namespace {

constexpr const char* kBackend4 = "192.0.2.21";
constexpr const char* kBackend6 = "2001:db8:100::21";

/// TCP 80 over both families to one backend.
ServiceSpec web(const TunnelSpec& spec, const char* backend) {
  return service({"203.0.113.10", "2001:db8::10"}, tcp(80)).via(spec).to(backend);
}

std::vector<TunnelSpec> all_encapsulations() { return {ipip(), gre(), gue(), gue0()}; }

/// What must stand before the inner packet. Flow label and source port are the flow's: they are
/// taken from what left, and have tests of their own.
Packet outer_of(const TunnelSpec& spec, const char* backend, const Handled& handled,
                std::uint8_t dscp = 0, std::uint8_t ecn = 0) {
  Packet outer;
  const bool v4 = Ip(backend).is_v4();
  if (v4)
    outer = Ip4{.src = "192.0.2.1", .dst = backend, .dscp = dscp, .ecn = ecn};
  else
    outer = Ip6{.src = "2001:db8:100::1",
                .dst = backend,
                .dscp = dscp,
                .ecn = ecn,
                .flow_label = layer<Ip6>(handled).flow_label};
  if (spec.encapsulation == Encapsulation::gre) outer = outer / Gre{};
  if (uses_udp(spec.encapsulation)) {
    Udp udp{.sport = layer<Udp>(handled).sport, .dport = 6080};
    if (v4 || !spec.udp6_checksum) udp.checksum = 0;
    outer = outer / udp;
  }
  if (spec.encapsulation == Encapsulation::gue0) outer = outer / Gue0{};
  return outer;
}

void check_tunnelled(LbUnderTest& lb, const TunnelSpec& spec, const char* backend,
                     const Packet& inner) {
  const Handled handled = lb.handle(Eth{} / inner);
  REQUIRE(handled.kind == Handled::Kind::sent);
  CHECK(handled == sent(from_lb / outer_of(spec, backend, handled) / inner));
}

std::uint16_t outer_port(const Handled& handled) { return layer<Udp>(handled).sport; }

}  // namespace

TEST_CASE("every encapsulation carries both families over both families") {
  for (const TunnelSpec& spec : all_encapsulations())
    for (const char* backend : {kBackend4, kBackend6}) {
      CAPTURE(name_of(spec.encapsulation), backend);
      LbUnderTest lb{web(spec, backend)};
      check_tunnelled(lb, spec, backend, Ip4{} / Tcp{.flags = Syn});
      check_tunnelled(lb, spec, backend, Ip6{} / Tcp{.flags = Syn});
      check_tunnelled(lb, spec, backend, Ip4{} / Tcp{} / payload(1000));
      check_tunnelled(lb, spec, backend, Ip6{} / Tcp{} / payload(1000));
    }
}

TEST_CASE("GRE on the wire, byte for byte") {
  LbUnderTest over4{web(gre(), kBackend4)};
  const Handled four = over4.handle(Eth{} / Ip4{} / Tcp{.flags = Syn});
  CHECK(hex(std::span(four.frame).subspan(14 + 20, 4)) == "00000800");
  CHECK(four.frame[14 + 9] == 47);
  LbUnderTest over6{web(gre(), kBackend6)};
  const Handled six = over6.handle(Eth{} / Ip6{} / Tcp{.flags = Syn});
  CHECK(hex(std::span(six.frame).subspan(14 + 40, 4)) == "000086dd");
  CHECK(six.frame[14 + 6] == 47);
}

TEST_CASE("GUE on the wire, byte for byte") {
  LbUnderTest one{web(gue(), kBackend4)};
  const Handled bare = one.handle(Eth{} / Ip4{} / Tcp{.flags = Syn});
  // Port 6080, length 8 + 40, no checksum, and the inner packet at once.
  CHECK(hex(std::span(bare.frame).subspan(14 + 20 + 2, 7)) == "17c00030000045");
  LbUnderTest zero{web(gue0(), kBackend4)};
  const Handled four = zero.handle(Eth{} / Ip4{} / Tcp{.flags = Syn});
  CHECK(hex(std::span(four.frame).subspan(14 + 20 + 2, 11)) == "17c0003400000004000045");
  const Handled six = zero.handle(Eth{} / Ip6{} / Tcp{.flags = Syn});
  CHECK(hex(std::span(six.frame).subspan(14 + 20 + 2, 11)) == "17c0004800000029000060");
}

TEST_CASE("DSCP is copied or fixed, ECN is always copied, and the inner packet is left alone") {
  for (TunnelSpec spec : all_encapsulations())
    for (const char* backend : {kBackend4, kBackend6})
      for (const int fixed : {-1, 0, 46, 63}) {
        spec.dscp.reset();
        if (fixed >= 0) spec.dscp = static_cast<std::uint8_t>(fixed);
        LbUnderTest lb{web(spec, backend)};
        for (const std::uint8_t dscp : {std::uint8_t{0}, std::uint8_t{10}, std::uint8_t{63}})
          for (std::uint8_t ecn = 0; ecn < 4; ++ecn) {
            CAPTURE(name_of(spec.encapsulation), backend, fixed, int{dscp}, int{ecn});
            const auto wanted = fixed < 0 ? dscp : static_cast<std::uint8_t>(fixed);
            for (const Packet& inner :
                 {Ip4{.dscp = dscp, .ecn = ecn} / Tcp{}, Ip6{.dscp = dscp, .ecn = ecn} / Tcp{}}) {
              const Handled handled = lb.handle(Eth{} / inner);
              const auto outer = outer_of(spec, backend, handled, wanted, ecn);
              CHECK(handled == sent(from_lb / outer / inner));
            }
          }
      }
}

TEST_CASE("DF is set and the TTL is 64 outside, whatever the inner packet has") {
  for (const TunnelSpec& spec : all_encapsulations()) {
    LbUnderTest lb{web(spec, kBackend4)};
    const Handled handled = lb.handle(Eth{} / Ip4{.ttl = 3, .df = false} / Tcp{});
    CHECK(layer<Ip4>(handled).df);
    CHECK(layer<Ip4>(handled).ttl == 64);
  }
}

TEST_CASE("the outer source port is a flow's own, from 49152 on, and spreads over flows") {
  for (const TunnelSpec& spec : {gue(), gue0()})
    for (const char* backend : {kBackend4, kBackend6}) {
      LbUnderTest lb{web(spec, backend)};
      std::set<std::uint16_t> seen;
      for (std::uint16_t port = 1000; port < 1200; ++port) {
        const auto first = outer_port(lb.handle(Eth{} / Ip4{} / Tcp{.sport = port, .flags = Syn}));
        CHECK(first >= 49152);
        const Packet later = Ip4{.ecn = 2, .ttl = 9} / Tcp{.sport = port} / payload(99);
        CHECK(outer_port(lb.handle(Eth{} / later)) == first);
        seen.insert(first);
      }
      // 200 draws out of 16384: about one pair is equal.
      CHECK(seen.size() > 190);
      // Both ends of the range are used: a draw misses a quarter with chance 3/4.
      CHECK(*seen.begin() < 49152 + 4096);
      CHECK(*seen.rbegin() > 65535 - 4096);
    }
}

TEST_CASE("an ICMP error has the outer source port of its flow") {
  LbUnderTest lb{web(gue(), kBackend4)};
  const auto port = outer_port(lb.handle(Eth{} / Ip4{} / Tcp{.flags = Syn}));
  const Packet reply = Ip4{.src = "203.0.113.10", .dst = "198.51.100.7"} /
                       Tcp{.sport = 80, .dport = 40000} / payload(1000);
  const Handled error = lb.handle(Eth{} / Ip4{.src = "198.51.100.254"} /
                                  Icmp{.type = 3, .code = 4, .rest = 1400} / quote(reply, 28));
  REQUIRE(error.kind == Handled::Kind::sent);
  CHECK(outer_port(error) == port);
}

TEST_CASE("IPIP's outer source can be a flow's own, out of a prefix") {
  TunnelSpec spec = ipip();
  spec.source_v4 = "10.9.0.0";
  spec.source_v6 = "2001:db8:9::";
  spec.source_spread = 0xffff;
  for (const char* backend : {kBackend4, kBackend6}) {
    LbUnderTest lb{web(spec, backend)};
    std::set<std::string> seen;
    for (std::uint16_t port = 1000; port < 1200; ++port) {
      const auto source = [&](const Packet& packet) -> IpAddress {
        const Handled handled = lb.handle(Eth{} / packet);
        if (Ip(backend).is_v4()) return layer<Ip4>(handled).src;
        return layer<Ip6>(handled).src;
      };
      const IpAddress first = source(Ip4{} / Tcp{.sport = port, .flags = Syn});
      CHECK(source(Ip4{} / Tcp{.sport = port} / payload(9)) == first);
      CHECK((Prefix::parse("10.9.0.0/16")->contains(first) ||
             Prefix::parse("2001:db8:9::/112")->contains(first)));
      seen.insert(first.text());
    }
    CHECK(seen.size() > 190);
  }
}

TEST_CASE("what fills the tunnel to its last byte goes") {
  for (const TunnelSpec& spec : all_encapsulations())
    for (const char* backend : {kBackend4, kBackend6}) {
      CAPTURE(name_of(spec.encapsulation), backend);
      LbUnderTest lb{web(spec, "192.0.2.99")};
      lb.service(0).backends = {dsl::backend(backend).over({Hop{.mtu = 1500}})};
      lb.publish();
      const auto room = 1500u - tunnel_overhead(spec.encapsulation, Ip(backend).family());
      check_tunnelled(lb, spec, backend, Ip4{} / Tcp{} / payload(room - 40));
      const Handled longer = lb.handle(Eth{} / Ip4{} / Tcp{} / payload(room - 39));
      CHECK(longer.kind != Handled::Kind::sent);
    }
}

// SPDX-License-Identifier: Apache-2.0
// mss_clamp: what the backend hears of the client's MSS. All checksums of what comes out are
// computed anew by the tests' packets, so a checksum that was not mended does not compare equal.
#include "tests/dsl/expect.h"

using namespace holdfast;
using namespace holdfast::dsl;

namespace {

Bytes mss(std::uint16_t value) {
  return {2, 4, static_cast<std::uint8_t>(value >> 8), static_cast<std::uint8_t>(value)};
}
/// As Linux sends it: SACK permitted, timestamps and window scale behind.
Bytes with_others(std::uint16_t value) {
  Bytes options = mss(value);
  const Bytes others{4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7};
  options.insert(options.end(), others.begin(), others.end());
  return options;
}

ServiceSpec clamped(std::uint16_t most) {
  ServiceSpec spec = service({"203.0.113.10", "2001:db8::10"}, tcp(80)).to("192.0.2.21");
  spec.settings.mss_clamp = most;
  return spec;
}

Handled tunnelled(const Packet& inner) {
  return sent(from_lb / Ip4{.src = "192.0.2.1", .dst = "192.0.2.21"} / inner);
}

}  // namespace

TEST_CASE("the MSS of a SYN is lowered to the clamp of its service, IPv4 and IPv6") {
  LbUnderTest lb{clamped(1300)};
  const auto syn = [](std::uint16_t value) {
    return Tcp{.flags = Syn, .options = with_others(value)};
  };
  CHECK(lb.handle(Eth{} / Ip4{} / syn(1460)) == tunnelled(Ip4{} / syn(1300)));
  CHECK(lb.handle(Eth{} / Ip6{} / syn(1440)) == tunnelled(Ip6{} / syn(1300)));
}

TEST_CASE("an MSS is never raised") {
  LbUnderTest lb{clamped(1300)};
  for (const int value : {0, 536, 1299, 1300}) {
    const Bytes options = mss(static_cast<std::uint16_t>(value));
    const Packet syn = Ip4{} / Tcp{.flags = Syn, .options = options};
    CHECK(lb.handle(Eth{} / syn) == tunnelled(syn));
  }
}

TEST_CASE("every packet with SYN is clamped, whatever other flags and data it has") {
  LbUnderTest lb{clamped(1300)};
  for (const auto flags : {Syn | Ack, Syn | 0xc0, Syn | Psh, Syn | Fin}) {
    const auto packet = [&](std::uint16_t value) {
      return Ip4{} / Tcp{.flags = static_cast<std::uint8_t>(flags), .options = mss(value)} /
             payload(33);
    };
    CHECK(lb.handle(Eth{} / packet(1460)) == tunnelled(packet(1300)));
  }
}

TEST_CASE("what looks like an MSS in a packet without SYN is left alone") {
  LbUnderTest lb{clamped(1300)};
  for (const auto flags : {+Ack, Ack | Psh, Fin | Ack, +Rst}) {
    const Packet packet =
        Ip4{} / Tcp{.flags = static_cast<std::uint8_t>(flags), .options = mss(1460)} / payload(9);
    CHECK(lb.handle(Eth{} / packet) == tunnelled(packet));
  }
}

TEST_CASE("a SYN without an MSS, or with options that do not add up, is left alone") {
  LbUnderTest lb{clamped(1300)};
  for (const Bytes& options :
       {Bytes{}, Bytes{4, 2, 3, 3, 7}, Bytes{2, 3, 5, 0}, Bytes{3, 0, 2, 4, 5, 0xb4},
        Bytes{0, 0, 0, 0, 2, 4, 5, 0xb4}, Bytes{1, 1, 2, 9, 5, 0xb4, 0, 0}}) {
    const Packet syn = Ip4{} / Tcp{.flags = Syn, .options = options};
    CHECK(lb.handle(Eth{} / syn) == tunnelled(syn));
  }
}

TEST_CASE("an MSS at an odd place is clamped, and behind IPv4 options and IPv6 extension headers") {
  LbUnderTest lb{clamped(1300)};
  const auto syn = [](std::uint16_t value) {
    Bytes options = mss(value);
    options.insert(options.begin(), 1);
    return Tcp{.flags = Syn, .options = options};
  };
  const Ip4 with_options{.options = {0x94, 4, 0, 0}};
  CHECK(lb.handle(Eth{} / with_options / syn(1460)) == tunnelled(with_options / syn(1300)));
  CHECK(lb.handle(Eth{} / Ip6{} / HopByHop{} / syn(1440)) ==
        tunnelled(Ip6{} / HopByHop{} / syn(1300)));
}

TEST_CASE("without a clamp a SYN is not touched") {
  LbUnderTest lb{service("203.0.113.10", tcp(80)).to("192.0.2.21")};
  const Packet syn = Ip4{} / Tcp{.flags = Syn, .options = mss(65535)};
  CHECK(lb.handle(Eth{} / syn) == tunnelled(syn));
}

TEST_CASE("under an authentication header nothing is changed") {
  LbUnderTest lb{clamped(1300)};
  const Packet syn = Ip6{} / Authentication{} / Tcp{.flags = Syn, .options = mss(1440)};
  CHECK(lb.handle(Eth{} / syn) == tunnelled(syn));
}

TEST_CASE("the padding of a short frame is not taken for options") {
  LbUnderTest lb{clamped(1300)};
  const Packet bare = Ip4{} / Tcp{.flags = Syn};
  CHECK(lb.handle((Eth{} / bare).padded_to(64)) == tunnelled(bare));
}

// SPDX-License-Identifier: Apache-2.0
#include "lib/net/outer_quote.h"

#include <random>

#include "tests/catch.h"
#include "tests/dsl/packet.h"

using namespace holdfast;
using namespace holdfast::dsl;

namespace {

const Ip kLb4 = "192.0.2.1";
const Ip kLb6 = "2001:db8:100::1";
const Ip kBackend4 = "192.0.2.21";
const Ip kBackend6 = "2001:db8:100::21";

/// What this host sent: a client's packet of 1480 bytes in the tunnel.
Packet sent4(std::size_t bytes = 1460) {
  return Ip4{.src = kLb4, .dst = kBackend4} / Ip4{} / Tcp{} / payload(bytes - 40);
}
Packet sent6(std::size_t bytes = 1460) {
  return Ip6{.src = kLb6, .dst = kBackend6} / Ip6{} / Tcp{} / payload(bytes - 60);
}

/// As a raw socket gives it: with the IP header.
Bytes needed4(const Packet& about, std::uint32_t rest, std::size_t quoted = 28) {
  return (Ip4{.src = "198.51.100.1", .dst = kLb4} / Icmp{.type = 3, .code = 4, .rest = rest} /
          quote(about, quoted))
      .bytes();
}
/// As a raw socket gives it: from the ICMPv6 header on.
Bytes too_big6(const Packet& about, std::uint32_t mtu, std::size_t quoted = 1232) {
  const Bytes whole = (Ip6{.src = "2001:db8:200::1", .dst = kLb6} / Icmp6{.type = 2, .rest = mtu} /
                       quote(about, quoted))
                          .bytes();
  return {whole.begin() + 40, whole.end()};
}

OuterQuoteFault fault4(const Bytes& message) {
  const auto read = read_outer_quote(Family::ipv4, message);
  REQUIRE_FALSE(read);
  return read.error();
}
OuterQuoteFault fault6(const Bytes& message) {
  const auto read = read_outer_quote(Family::ipv6, message);
  REQUIRE_FALSE(read);
  return read.error();
}

}  // namespace

TEST_CASE("a fragmentation-needed about a tunnelled packet names its tunnel and the MTU") {
  const auto read = read_outer_quote(Family::ipv4, needed4(sent4(), 1400));
  REQUIRE(read);
  CHECK(read->source == kLb4);
  CHECK(read->destination == kBackend4);
  CHECK(read->protocol == IpProtocol::ipv4);
  CHECK(read->mtu == 1400);
}

TEST_CASE("a Packet Too Big about a tunnelled packet names its tunnel and the MTU") {
  const auto read = read_outer_quote(Family::ipv6, too_big6(sent6(), 1400));
  REQUIRE(read);
  CHECK(read->source == kLb6);
  CHECK(read->destination == kBackend6);
  CHECK(read->protocol == IpProtocol::ipv6);
  CHECK(read->mtu == 1400);
}

TEST_CASE("of a quoted UDP packet the destination port is told") {
  const Packet gue4 = Ip4{.src = kLb4, .dst = kBackend4} / Udp{.dport = 6080} / payload(1460);
  const auto read4 = read_outer_quote(Family::ipv4, needed4(gue4, 1400));
  REQUIRE(read4);
  CHECK(read4->protocol == IpProtocol::udp);
  CHECK(read4->destination_port.host() == 6080);
  const Packet gue6 = Ip6{.src = kLb6, .dst = kBackend6} / Udp{.dport = 6080} / payload(1460);
  const auto read6 = read_outer_quote(Family::ipv6, too_big6(gue6, 1400, 48));
  REQUIRE(read6);
  CHECK(read6->destination_port.host() == 6080);
  CHECK(fault4(needed4(gue4, 1400, 23)) == OuterQuoteFault::malformed);
}

TEST_CASE("the upper half of the MTU's word of IPv4 means nothing") {
  const auto read = read_outer_quote(Family::ipv4, needed4(sent4(), 0xabcd0000u + 1400));
  REQUIRE(read);
  CHECK(read->mtu == 1400);
}

TEST_CASE("an MTU below what such a path must have is not believed, the least one is") {
  CHECK(fault4(needed4(sent4(), 0)) == OuterQuoteFault::mtu_too_small);
  CHECK(fault4(needed4(sent4(), 575)) == OuterQuoteFault::mtu_too_small);
  CHECK(read_outer_quote(Family::ipv4, needed4(sent4(), 576)));
  CHECK(fault6(too_big6(sent6(), 0)) == OuterQuoteFault::mtu_too_small);
  CHECK(fault6(too_big6(sent6(), 1279)) == OuterQuoteFault::mtu_too_small);
  CHECK(read_outer_quote(Family::ipv6, too_big6(sent6(), 1280)));
}

TEST_CASE("a packet that was no longer than the MTU would have fitted") {
  CHECK(fault4(needed4(sent4(1400), 1420)) == OuterQuoteFault::malformed);
  CHECK(read_outer_quote(Family::ipv4, needed4(sent4(1401), 1420)));
  CHECK(fault6(too_big6(sent6(1400), 1440)) == OuterQuoteFault::malformed);
  CHECK(read_outer_quote(Family::ipv6, too_big6(sent6(1401), 1440)));
  CHECK(fault6(too_big6(sent6(), 0x80000000u + 1400)) == OuterQuoteFault::malformed);
}

TEST_CASE("an MTU that 16 bits can not hold is not taken for a small one") {
  // The longest IPv6 packet is 40 bytes longer than the longest MTU.
  Bytes longest = sent6().bytes();
  longest[4] = longest[5] = 0xff;  // its payload length
  for (const std::uint32_t mtu : {65536u, 65574u, 0x10578u, 0xffffffffu})
    CHECK(fault6(too_big6(Raw{longest}, mtu)) == OuterQuoteFault::malformed);
  CHECK(read_outer_quote(Family::ipv6, too_big6(Raw{longest}, 65535))->mtu == 65535);
}

TEST_CASE("other messages are not read") {
  const auto with = [](Icmp icmp) {
    return (Ip4{.src = "198.51.100.1", .dst = kLb4} / icmp / quote(sent4(), 28)).bytes();
  };
  for (const Icmp& icmp : {Icmp{.type = 3, .code = 3, .rest = 1400}, Icmp{.type = 11, .rest = 1400},
                           Icmp{.type = 8, .code = 4, .rest = 1400}})
    CHECK(fault4(with(icmp)) == OuterQuoteFault::another_message);
  CHECK(fault4((Ip4{.dst = kLb4} / Udp{} / payload(100)).bytes()) ==
        OuterQuoteFault::another_message);
  Bytes unreachable = too_big6(sent6(), 1400);
  unreachable[0] = 1;
  CHECK(fault6(unreachable) == OuterQuoteFault::another_message);
}

TEST_CASE("a fragmentation-needed with a wrong checksum is not believed") {
  Bytes message = needed4(sent4(), 1400);
  message.back() ^= 1;
  CHECK(fault4(message) == OuterQuoteFault::malformed);
}

TEST_CASE("what we send is never fragmented, so fragments that are quoted are not ours") {
  Ip4 outer{.src = kLb4, .dst = kBackend4};
  outer.more_fragments = true;
  const Packet inner = Ip4{} / Tcp{} / payload(1400);
  CHECK(fault4(needed4(outer / inner, 1400)) == OuterQuoteFault::malformed);
  outer.more_fragments = false;
  outer.fragment_offset = 100;
  CHECK(fault4(needed4(outer / inner, 1400)) == OuterQuoteFault::malformed);
}

TEST_CASE("cut anywhere, a message is read or refused, and never read beyond its end") {
  const Bytes whole4 = needed4(sent4(), 1400);
  for (std::size_t size = 0; size < whole4.size(); ++size) {
    const Bytes cut(whole4.begin(), whole4.begin() + static_cast<std::ptrdiff_t>(size));
    CHECK_FALSE(read_outer_quote(Family::ipv4, cut));  // the IP header says how much is missing
  }
  const Bytes whole6 = too_big6(sent6(), 1400, 60);
  for (std::size_t size = 0; size < whole6.size(); ++size) {
    const Bytes cut(whole6.begin(), whole6.begin() + static_cast<std::ptrdiff_t>(size));
    CHECK(read_outer_quote(Family::ipv6, cut).has_value() == (size >= 48));
  }
}

// SPDX-License-Identifier: Apache-2.0
// Packets that are spread over several buffers are treated as if they were in one, wherever they
// are split. What leaves is compared as bytes; TestIo sees that each buffer is given back once.
#include "lb/segments.h"

#include "tests/dsl/expect.h"
#include "tests/dsl/samples.h"

using namespace holdfast;
using namespace holdfast::dsl;

namespace {

constexpr std::uint16_t kRoom = 3712;  // of the daemon's buffers

ServiceSpec web() {
  const Hop wide{.mtu = 9000};
  return service({"203.0.113.10", "2001:db8::10"}, tcp(80)).to(backend("192.0.2.21").over({wide}));
}

Packet tunnelled(const Packet& inner) {
  return from_lb / Ip4{.src = "192.0.2.1", .dst = "192.0.2.21"} / inner;
}

/// As drivers give a frame that is longer than a buffer.
MbufShape jumbo() { return {.first_segment = kRoom, .other_segments = kRoom + 128}; }

}  // namespace

TEST_CASE("multi-segment: a packet is forwarded as a whole one, wherever its headers are split") {
  LbUnderTest lb{web()};
  for (const Packet& packet :
       {Ip4{} / Tcp{.flags = Syn} / payload(40), Ip6{} / HopByHop{} / Tcp{} / payload(9),
        Ip4{.options = {1, 1, 1, 0}} / Tcp{.options = Bytes(12, 1)} / payload(3)}) {
    const Packet frame = Eth{} / Vlan{.id = 7} / packet;
    for (std::size_t split = 0; split < frame.size(); ++split)
      for (const std::size_t others : {std::size_t{1}, std::size_t{5}, SIZE_MAX}) {
        CAPTURE(split, others);
        REQUIRE(lb.handle(frame,
                          {.tailroom = kRoom, .first_segment = split, .other_segments = others}) ==
                sent(tunnelled(packet)));
      }
  }
}

TEST_CASE("multi-segment: any sample packet ends as it does in one buffer") {
  LbUnderTest whole(sample_services(), {.icmp_relay_rate = 1'000'000});
  LbUnderTest split(sample_services(), {.icmp_relay_rate = 1'000'000});
  for (const Packet& packet : sample_packets()) {
    const Bytes bytes = packet.bytes();
    for (std::size_t at = 0; at < std::min<std::size_t>(bytes.size(), 120); ++at) {
      CAPTURE(at);
      const Handled expected = whole.handle(bytes);
      REQUIRE(split.handle(bytes, {.tailroom = kRoom, .first_segment = at}) == expected);
    }
  }
}

TEST_CASE("multi-segment: jumbo frames are forwarded up to the way's MTU") {
  LbUnderTest lb{web()};
  for (const std::size_t size : {3700u, 3800u, 8000u, 8939u, 8940u}) {
    const Packet packet = Ip4{} / Tcp{} / payload(size);
    CAPTURE(size);
    CHECK(lb.handle(Eth{} / packet, jumbo()) == sent(tunnelled(packet)));
    CHECK(lb.handle(Eth{} / Vlan{} / packet, jumbo()) == sent(tunnelled(packet)));
  }
  CHECK(lb.counters_of_backend("192.0.2.21").bytes ==
        2 * (5 * 40 + 3700 + 3800 + 8000 + 8939 + 8940));
}

TEST_CASE("multi-segment: a jumbo frame over IPv6 to an IPv6 backend") {
  LbUnderTest lb{
      service("2001:db8::10", tcp(80)).to(backend("2001:db8:100::21").over({Hop{.mtu = 9000}}))};
  const Packet packet = Ip6{} / DestinationOptions{} / Tcp{} / payload(8500);
  const Handled handled = lb.handle(Eth{} / packet, jumbo());
  CHECK(handled == sent(from_lb /
                        Ip6{.src = "2001:db8:100::1",
                            .dst = "2001:db8:100::21",
                            .flow_label = layer<Ip6>(handled).flow_label} /
                        packet));
}

TEST_CASE("multi-segment: padding is not tunnelled, whichever buffers it is in") {
  LbUnderTest lb{web()};
  const Packet packet = Ip4{} / Tcp{} / payload(5000);
  const std::size_t size = (Eth{} / packet).size();
  for (const std::size_t padded : {size + 1, size + 500, size + 3000})
    for (const std::size_t others : {100u, 3840u}) {
      const MbufShape shape{.first_segment = kRoom, .other_segments = others};
      CHECK(lb.handle((Eth{} / packet).padded_to(padded), shape) == sent(tunnelled(packet)));
    }
}

TEST_CASE("multi-segment: a frame that is shorter than its packet says is refused") {
  LbUnderTest lb{web()};
  const Packet frame = Eth{} / Ip4{} / Tcp{} / payload(5000);
  CHECK(lb.handle(frame.cut_to(frame.size() - 1), jumbo()) ==
        dropped(DropReason::ipv4_bad_total_length));
}

TEST_CASE("multi-segment: what is not for a VIP goes to the kernel as it came, padding included") {
  LbUnderTest lb{web()};
  const Packet frame = (Eth{} / Ip4{.dst = "203.0.113.99"} / Tcp{} / payload(5000)).padded_to(5500);
  CHECK(lb.handle(frame, jumbo()) == to_kernel(frame));
  const Packet arp = Eth{.type = 0x0806} / payload(46);
  CHECK(lb.handle(arp, {.tailroom = kRoom, .first_segment = 10}) == to_kernel(arp));
}

TEST_CASE("multi-segment: a port that sends single buffers only gets what fits into one") {
  LbUnderTest lb{web()};
  lb.io.without_chains = {PortNumber{0}};
  const Packet packet = Ip4{} / Tcp{} / payload(2000);
  CHECK(lb.handle(Eth{} / packet, {.tailroom = kRoom, .first_segment = 700}) ==
        sent(tunnelled(packet)));
  CHECK(lb.handle(Eth{} / Ip4{} / Tcp{} / payload(5000), jumbo()) ==
        dropped(DropReason::multi_segment));
}

TEST_CASE("multi-segment: headers of more than a buffer's head are refused, not guessed") {
  LbUnderTest lb{web()};
  // Options of 2048 bytes are all in the first buffer here, and are not there.
  const Packet long_options =
      Eth{} / Ip6{} / HopByHop{.options = Bytes(2046)} / Tcp{} / payload(5000);
  CHECK(lb.handle(long_options, jumbo()).kind == Handled::Kind::sent);
  CHECK(lb.handle(long_options, {.first_segment = kHead, .other_segments = 3840}) ==
        dropped(DropReason::ipv6_bad_extension));
}

TEST_CASE("multi-segment: an ICMP error in two buffers follows its flow") {
  LbUnderTest lb{web()};
  const Packet error =
      Ip4{.src = "198.51.100.254"} / Icmp{.type = 3, .code = 4, .rest = 1400} /
      quote(Ip4{.src = "203.0.113.10", .dst = "198.51.100.7"} / Tcp{.sport = 80, .dport = 40000},
            28);
  for (std::size_t split = 0; split < (Eth{} / error).size(); ++split)
    CHECK(lb.handle(Eth{} / error, {.tailroom = kRoom, .first_segment = split}) ==
          sent(tunnelled(error)));
}

TEST_CASE("multi-segment: a jumbo frame that does not fit its tunnel is answered in one buffer") {
  LbUnderTest lb{service({"203.0.113.10", "2001:db8::10"}, tcp(80)).to("192.0.2.21")};
  for (const Packet& packet :
       {Ip4{.df = true} / Tcp{} / payload(5000), Ip6{} / Tcp{} / payload(5000)}) {
    const Handled in_several = lb.handle(Eth{} / packet, jumbo());
    REQUIRE(in_several.kind == Handled::Kind::answered);
    CHECK(in_several == lb.handle(Eth{} / packet));
  }
}

TEST_CASE("multi-segment: a jumbo echo request is answered whole") {
  LbUnderTest lb{web()};
  const Packet ping = Eth{} / Ip4{} / Icmp{.type = 8, .rest = 7} / payload(6000);
  const Handled in_several = lb.handle(ping, jumbo());
  REQUIRE(in_several.kind == Handled::Kind::answered);
  CHECK(in_several == lb.handle(ping));
  CHECK(in_several.frame.size() == ping.size());
}

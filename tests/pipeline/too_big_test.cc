// SPDX-License-Identifier: Apache-2.0
// Packets that do not fit their tunnel: those that may not be fragmented are answered, so that path
// MTU discovery works (field reports: dpvs#793 and #810, katran#82, opte#999); others are
// fragmented inside the tunnel.
#include <algorithm>
#include <random>

#include "tests/dsl/expect.h"

using namespace holdfast;
using namespace holdfast::dsl;

namespace {

const Ip client4 = "198.51.100.7";
const Ip client6 = "2001:db8:51::7";
const Ip vip4 = "203.0.113.10";
const Ip vip6 = "2001:db8::10";
const Ip backend4 = "192.0.2.21";
const Ip backend6 = "2001:db8:100::21";

constexpr std::size_t kAnyMtu = 9000;

ServiceSpec by(Ip address, std::uint16_t mtu) {
  return service({vip4, vip6}, tcp(80)).to(backend(address).over({Hop{.mtu = mtu}}));
}
ServiceSpec udp_by(Ip address, std::uint16_t mtu) {
  return service({vip4, vip6}, udp(443)).to(backend(address).over({Hop{.mtu = mtu}}));
}

/// A packet of `size` bytes in all.
Packet tcp4(std::size_t size) { return Ip4{} / Tcp{} / payload(size - 40); }
Packet tcp6(std::size_t size) { return Ip6{} / Tcp{} / payload(size - 60); }

Handled needs_fragmentation(const Packet& packet, std::uint32_t mtu) {
  return answered(from_lb / Ip4{.src = vip4, .dst = client4, .dscp = 48} /
                  Icmp{.type = 3, .code = 4, .rest = mtu} / quote(packet, 548));
}
Handled packet_too_big(const Packet& packet, std::uint32_t mtu) {
  return answered(from_lb / Ip6{.src = vip6, .dst = client6, .dscp = 48} /
                  Icmp6{.type = 2, .rest = mtu} / quote(packet, 1232));
}

/// The IP packets of all that left for one packet, out of their tunnels.
std::vector<Bytes> inner_packets(const Handled& handled) {
  INFO(describe(handled));
  REQUIRE(handled.kind == Handled::Kind::sent);
  std::vector<Bytes> frames{handled.frame};
  frames.insert(frames.end(), handled.more.begin(), handled.more.end());
  std::vector<Bytes> inner;
  for (const Bytes& frame : frames) {
    std::vector<Layer> layers = decode(frame).layers();
    const auto* outer = std::get_if<Ip4>(&layers.at(1));
    // Its lengths and checksum are what they must be, and nobody may fragment it again.
    if (outer != nullptr) {
      REQUIRE(outer->df);
      REQUIRE(!outer->total_length);
      REQUIRE(!outer->checksum);
    }
    const std::size_t headers = 14 + (outer != nullptr ? 20u : 40u);
    inner.emplace_back(frame.begin() + static_cast<std::ptrdiff_t>(headers), frame.end());
  }
  return inner;
}

/// Payload of the fragments in the order of their offsets; they fit together without a gap.
struct Whole {
  unsigned begins = 0;
  bool more = false;
  Bytes payload{};
};
Whole put_together(std::vector<Bytes> packets) {
  const auto offset = [](const Bytes& packet) { return (packet[6] % 32 * 256u + packet[7]) * 8; };
  const auto header = [](const Bytes& packet) {
    return static_cast<std::ptrdiff_t>(packet[0] % 16 * 4);
  };
  std::ranges::sort(packets, {}, offset);
  Whole whole{.begins = offset(packets.front()), .more = (packets.back()[6] & 0x20) != 0};
  for (const Bytes& packet : packets) {
    REQUIRE(offset(packet) == whole.begins + whole.payload.size());
    whole.payload.insert(whole.payload.end(), packet.begin() + header(packet), packet.end());
  }
  return whole;
}

Bytes payload_of(const Packet& packet) {
  const Bytes bytes = packet.bytes();
  return {bytes.begin() + bytes[0] % 16 * 4, bytes.end()};
}

}  // namespace

TEST_CASE("too long for the tunnel with DF: the client is told what fits, in all mixes") {
  struct Mix {
    Ip backend;
    std::uint16_t mtu;
    std::uint16_t fits;  // the next hop's MTU without the outer header
  };
  for (const Mix& mix : {Mix{backend4, 1500, 1480}, Mix{backend6, 1500, 1460},
                         Mix{backend4, 1400, 1380}, Mix{backend6, 1320, 1280}}) {
    LbUnderTest lb{by(mix.backend, mix.mtu)};
    CAPTURE(mix.fits);
    const auto longer = static_cast<std::size_t>(mix.fits) + 1;
    CHECK(lb.handle(Eth{} / tcp4(longer)) == needs_fragmentation(tcp4(longer), mix.fits));
    CHECK(lb.handle(Eth{} / tcp4(1500)) == needs_fragmentation(tcp4(1500), mix.fits));
    CHECK(lb.handle(Eth{} / tcp4(mix.fits)).kind == Handled::Kind::sent);
    CHECK(lb.handle(Eth{} / tcp6(longer)) == packet_too_big(tcp6(longer), mix.fits));
    CHECK(lb.handle(Eth{} / tcp6(1500)) == packet_too_big(tcp6(1500), mix.fits));
    CHECK(lb.handle(Eth{} / tcp6(mix.fits)).kind == Handled::Kind::sent);
    CHECK(lb.counters().answered == 4);
    CHECK(lb.counters().forwarded == 2);
  }
}

TEST_CASE("a tag on the way to the backend takes nothing from the IP MTU") {
  LbUnderTest lb{service(vip4, tcp(80)).to(backend(backend4).over({Hop{.vlan = 5, .mtu = 1500}}))};
  CHECK(lb.handle(Eth{} / tcp4(1480)).kind == Handled::Kind::sent);
  CHECK(lb.handle(Eth{} / tcp4(1481)) == needs_fragmentation(tcp4(1481), 1480));
}

TEST_CASE("UDP and QUIC are told like TCP, with all of the quote that fits") {
  LbUnderTest lb{udp_by(backend4, 1400)};
  const Packet udp4 = Ip4{} / Udp{} / payload(1400);
  const Packet udp6 = Ip6{} / Udp{} / payload(1400);
  CHECK(lb.handle(Eth{} / udp4) == needs_fragmentation(udp4, 1380));
  CHECK(lb.handle(Eth{} / udp6) == packet_too_big(udp6, 1380));
}

TEST_CASE("an answer about a packet with tags and padding goes back with the tags alone") {
  LbUnderTest lb{by(backend4, 600)};
  const Packet packet = tcp4(600);
  const Vlan tag{.id = 8};
  CHECK(lb.handle((Eth{} / tag / packet).padded_to(700), {.port = 2}) ==
        answered(from_lb / tag / Ip4{.src = vip4, .dst = client4, .dscp = 48} /
                     Icmp{.type = 3, .code = 4, .rest = 580} / quote(packet, 548),
                 2));
}

TEST_CASE("a packet too big on a draining backend is told its own tunnel's MTU") {
  LbUnderTest lb{service({vip4, vip6}, tcp(80))
                     .to(backend(backend4).over({Hop{.mtu = 1300}}))
                     .to(backend("192.0.2.22").over({Hop{.mtu = 1300}}))};
  const Packet syn = Ip4{} / Tcp{.flags = Syn};
  const Ip home = layer<Ip4>(lb.handle(Eth{} / syn)).dst;
  REQUIRE(lb.handle(Eth{} / Ip4{} / Tcp{}).kind == Handled::Kind::sent);
  lb.backend(home).state = BackendState::draining;
  lb.backend(home).hops[0].mtu = 1200;
  lb.publish();
  CHECK(lb.handle(Eth{} / tcp4(1400)) == needs_fragmentation(tcp4(1400), 1180));
}

TEST_CASE("nobody is told an IPv6 MTU below 1280, nor an IPv4 one below 68") {
  LbUnderTest narrow{by(backend4, 1200)};
  // 1280 is what every IPv6 path has to carry: who sends more is told so, who sends that is lost.
  CHECK(narrow.handle(Eth{} / tcp6(1281)) == packet_too_big(tcp6(1281), 1280));
  CHECK(narrow.handle(Eth{} / tcp6(1280)) == dropped(DropReason::too_big));
  CHECK(narrow.handle(Eth{} / tcp6(1181)) == dropped(DropReason::too_big));
  CHECK(narrow.handle(Eth{} / tcp6(1180)).kind == Handled::Kind::sent);
  LbUnderTest tiny{by(backend4, 70)};
  CHECK(tiny.handle(Eth{} / tcp4(69)) == needs_fragmentation(tcp4(69), 68));
  CHECK(tiny.handle(Eth{} / tcp4(68)) == dropped(DropReason::too_big));
}

TEST_CASE("about a packet too big nothing is said to whom nothing may be said") {
  LbUnderTest lb{by(backend4, 576)};
  const auto forbidden = dropped(DropReason::answer_forbidden);
  CHECK(lb.handle(Eth{.dst = "ff:ff:ff:ff:ff:ff"} / tcp4(1400)) == forbidden);
  CHECK(lb.handle((Eth{} / tcp4(1400)).bad_checksum()) == forbidden);
  const Packet error4 = Ip4{} / Icmp{.type = 3, .code = 4} /
                        quote(Ip4{.src = vip4, .dst = client4} / Tcp{.sport = 80} / payload(900));
  CHECK(lb.handle(Eth{} / error4) == forbidden);
  const Packet error6 = Ip6{} / Icmp6{.type = 1} /
                        quote(Ip6{.src = vip6, .dst = client6} / Tcp{.sport = 80} / payload(1300));
  CHECK(lb.handle(Eth{} / error6) == forbidden);
}

TEST_CASE("answers about packets too big have a rate of their own") {
  LbUnderTest lb({by(backend4, 1400)}, {.icmp_answer_rate = 10});
  for (int i = 0; i < 100; ++i) lb.handle(Eth{} / Ip4{} / Icmp{.type = 8});
  int told = 0;
  for (int i = 0; i < 100; ++i)
    told += lb.handle(Eth{} / tcp4(1500)).kind == Handled::Kind::answered ? 1 : 0;
  CHECK(told == 10);
  CHECK(lb.handle(Eth{} / tcp4(1500)) == dropped(DropReason::answer_rate_limited));
  CHECK(lb.handle(Eth{} / tcp4(1380)).kind == Handled::Kind::sent);
}

TEST_CASE("a buffer without room in front takes no answer") {
  LbUnderTest lb{by(backend4, 1400)};
  CHECK(lb.handle(Eth{} / tcp4(1500), {.headroom = 48}).kind == Handled::Kind::answered);
  CHECK(lb.handle(Eth{} / tcp4(1500), {.headroom = 47}) == dropped(DropReason::no_headroom));
}

TEST_CASE("without DF a packet too big goes through the tunnel in fragments") {
  for (const auto& [address, fits] : {std::pair{backend4, 1380u}, std::pair{backend6, 1360u}}) {
    LbUnderTest lb{udp_by(address, 1400)};
    const Packet packet = Ip4{.dscp = 3, .ttl = 9, .id = 77, .df = false} / Udp{} / payload(1472);
    const auto inner = inner_packets(lb.handle(Eth{} / packet));
    REQUIRE(inner.size() == 2);
    const unsigned front = (fits - 20) / 8 * 8;
    const Bytes all = payload_of(packet);
    Ip4 header{.dscp = 3, .ttl = 9, .id = 77, .df = false, .more_fragments = true, .protocol = 17};
    CHECK(inner[0] == (header / Raw{Bytes(all.begin(), all.begin() + front)}).bytes());
    header.more_fragments = false;
    header.fragment_offset = static_cast<std::uint16_t>(front / 8);
    CHECK(inner[1] == (header / Raw{Bytes(all.begin() + front, all.end())}).bytes());
    CHECK(lb.counters().forwarded == 1);
    CHECK(lb.counters().extra_fragments == 1);
    CHECK(lb.counters().transmitted == 2);
    // Bytes of a backend are those of the client's packet.
    CHECK(lb.counters_of_backend(address).packets == 1);
    CHECK(lb.counters_of_backend(address).bytes == 1500);
  }
}

TEST_CASE("fragments take the flow's way, tag and outer header") {
  LbUnderTest lb{
      service(vip4, udp(443)).to(backend(backend4).over({Hop{.port = 2, .vlan = 9, .mtu = 1400}}))};
  const Handled handled = lb.handle(Eth{} / Ip4{.df = false} / Udp{} / payload(1472));
  CHECK(handled.port == PortNumber{2});
  REQUIRE(handled.more.size() == 1);
  const Packet second = decode(handled.more[0]);
  CHECK(std::get<Vlan>(second.layers().at(1)).id == 9);
  const auto& outer = std::get<Ip4>(second.layers().at(2));
  CHECK(outer.dst == backend4);
  CHECK(outer.src == Ip("192.0.2.1"));
}

TEST_CASE("packets of every length and way arrive whole, and no fragment is too long") {
  std::mt19937 random(11);
  for (const std::uint16_t mtu : {std::uint16_t{576}, std::uint16_t{1400}, std::uint16_t{3000}}) {
    LbUnderTest lb{udp_by(backend4, mtu)};
    for (int round = 0; round < 300; ++round) {
      const std::size_t size = 28 + random() % (kAnyMtu - 28 - 40);
      const Packet packet = Ip4{.id = static_cast<std::uint16_t>(random()),
                                .df = false,
                                .options = Bytes(random() % 11 * 4, 1)} /
                            Udp{} / payload(size);
      CAPTURE(mtu, size);
      const auto inner = inner_packets(lb.handle(Eth{} / packet));
      for (const Bytes& fragment : inner) REQUIRE(fragment.size() + 20 <= mtu);
      REQUIRE(put_together(inner).payload == payload_of(packet));
    }
  }
}

TEST_CASE("an ICMP error without DF that does not fit is fragmented as well") {
  LbUnderTest lb{by(backend4, 576)};
  const Packet error = Ip4{.df = false} / Icmp{.type = 3, .code = 1} /
                       quote(Ip4{.src = vip4, .dst = client4} / Tcp{.sport = 80} / payload(900));
  CHECK(put_together(inner_packets(lb.handle(Eth{} / error))).payload == payload_of(error));
}

TEST_CASE("a header with a wrong checksum gets no good one by being fragmented") {
  LbUnderTest lb{udp_by(backend4, 1400)};
  const Packet packet = Ip4{.df = false} / Udp{} / payload(1472);
  CHECK(lb.handle((Eth{} / packet).bad_checksum()) == dropped(DropReason::ipv4_bad_checksum));
  // A short one is left to the backend, as it came.
  const Packet small = Ip4{.df = false} / Udp{} / payload(100);
  CHECK(lb.handle((Eth{} / small).bad_checksum()).kind == Handled::Kind::sent);
}

TEST_CASE("without buffers nothing is sent of a packet, and none is lost") {
  LbUnderTest lb{udp_by(backend4, 576)};
  const Packet packet = Ip4{.df = false} / Udp{} / payload(1472);
  lb.io.buffers = 1;  // two are needed
  CHECK(lb.handle(Eth{} / packet) == dropped(DropReason::no_buffers));
  CHECK(lb.counters().transmitted == 0);
  lb.io.buffers = 2;
  CHECK(lb.handle(Eth{} / packet).more.size() == 2);
}

TEST_CASE("more fragments than a burst has places for are dropped with all of their packet") {
  LbUnderTest lb{udp_by(backend4, 88)};
  // 48 bytes a fragment.
  const Packet packet = Ip4{.df = false} / Udp{} / payload(40 + 48 * Burst::kMaxExtra);
  CHECK(lb.handle(Eth{} / packet).more.size() == Burst::kMaxExtra);
  CHECK(lb.handle(Eth{} / packet / payload(1)) == dropped(DropReason::no_buffers));
  // What does not fit behind the others costs only itself.
  const Packet half = Ip4{.df = false} / Udp{} / payload(40 + 24 * Burst::kMaxExtra);
  const auto all = lb.handle_all({Eth{} / half, Eth{} / packet, Eth{} / half});
  CHECK(all[0].more.size() == Burst::kMaxExtra / 2);
  CHECK(all[1] == dropped(DropReason::no_buffers));
  CHECK(all[2].more.size() == Burst::kMaxExtra / 2);
}

TEST_CASE("a port that takes some of the fragments has dropped the packet") {
  LbUnderTest lb{udp_by(backend4, 576)};
  lb.io.transmit_room[PortNumber{0}] = 2;  // of three
  lb.handle(Eth{} / Ip4{.df = false} / Udp{} / payload(1472));
  CHECK(lb.counters().forwarded == 0);
  CHECK(lb.counters().extra_fragments == 2);
  CHECK(lb.dropped_for(DropReason::tx_full) == 1);
}

TEST_CASE("nothing fits a tunnel whose MTU has no room for a header and eight bytes") {
  for (const std::uint16_t mtu : {std::uint16_t{0}, std::uint16_t{19}, std::uint16_t{47}}) {
    LbUnderTest lb{udp_by(backend4, mtu)};
    CHECK(lb.handle(Eth{} / Ip4{.df = false} / Udp{} / payload(100)) ==
          dropped(DropReason::too_big));
    CHECK(lb.handle(Eth{} / Ip6{} / Udp{} / payload(100)) == dropped(DropReason::too_big));
  }
}

TEST_CASE("each encapsulation takes the bytes of its own header, from answers and from fragments") {
  struct Header {
    TunnelSpec tunnel;
    std::uint16_t over4;
    std::uint16_t over6;
  };
  for (const Header& header : {Header{ipip(), 20, 40}, Header{gre(), 24, 44}, Header{gue(), 28, 48},
                               Header{gue0(), 32, 52}})
    for (const Ip& address : {backend4, backend6}) {
      const std::uint16_t overhead = address.is_v4() ? header.over4 : header.over6;
      const auto fits = static_cast<std::uint16_t>(1500 - overhead);
      CAPTURE(fits);
      LbUnderTest lb{by(address, 1500).via(header.tunnel),
                     udp_by(address, 1500).via(header.tunnel)};
      CHECK(lb.handle(Eth{} / tcp4(fits)).kind == Handled::Kind::sent);
      CHECK(lb.handle(Eth{} / tcp4(fits + 1u)) == needs_fragmentation(tcp4(fits + 1u), fits));
      CHECK(lb.handle(Eth{} / tcp6(fits + 1u)) == packet_too_big(tcp6(fits + 1u), fits));

      const Packet packet = Ip4{.df = false} / Udp{} / payload(1472);
      const Handled handled = lb.handle(Eth{} / packet);
      REQUIRE(handled.more.size() == 1);
      std::vector<Bytes> inner;
      for (const Bytes& frame : {handled.frame, handled.more[0]}) {
        CHECK(frame.size() <= 14u + 1500u);
        inner.emplace_back(frame.begin() + 14 + overhead, frame.end());
        const auto layers = decode(frame).layers();
        // Over IPv6 the outer checksum covers each fragment: left open, it is what it must be.
        if (const auto* outer = std::get_if<Udp>(&layers.at(2));
            outer != nullptr && !address.is_v4())
          CHECK(!outer->checksum);
      }
      CHECK(put_together(inner).payload == payload_of(packet));
    }
}

TEST_CASE(
    "a client's own fragments that do not fit are fragmented further, and the datagram is whole") {
  const Bytes datagram = (Udp{} / payload(2800)).bytes();
  const auto part = [&](std::size_t from, std::size_t to) {
    return Raw{Bytes(datagram.begin() + static_cast<std::ptrdiff_t>(from),
                     datagram.begin() + static_cast<std::ptrdiff_t>(to))};
  };
  const Ip4 first{.id = 9, .df = false, .more_fragments = true, .protocol = 17};
  const Ip4 last{.id = 9, .df = false, .fragment_offset = 185, .protocol = 17};
  for (const std::uint16_t mtu : {std::uint16_t{1000}, std::uint16_t{1519}, std::uint16_t{576}}) {
    LbUnderTest lb{udp_by(backend4, mtu)};
    std::vector<Bytes> all;
    for (const Packet& packet : {first / part(0, 1480), last / part(1480, datagram.size())}) {
      const auto inner = inner_packets(lb.handle(Eth{} / packet));
      all.insert(all.end(), inner.begin(), inner.end());
    }
    CHECK(all.size() > 2);
    const Whole whole = put_together(all);
    CHECK(whole.begins == 0);
    CHECK_FALSE(whole.more);
    CHECK(whole.payload == datagram);
  }
}

TEST_CASE("of fragments with DF that do not fit the first is answered, a later one never in IPv4") {
  LbUnderTest lb{udp_by(backend4, 1400)};
  const Packet first4 = Ip4{.id = 9, .more_fragments = true} / Udp{} / payload(1472);
  CHECK(lb.handle(Eth{} / first4) == needs_fragmentation(first4, 1380));
  const Packet later4 = Ip4{.id = 9, .fragment_offset = 185, .protocol = 17} / payload(1480);
  CHECK(lb.handle(Eth{} / later4) == dropped(DropReason::answer_forbidden));
  // RFC 4443 2.4 e has no such rule.
  const Packet first6 = Ip6{} / Fragment6{.more = true, .id = 9} / Udp{} / payload(1440);
  CHECK(lb.handle(Eth{} / first6) == packet_too_big(first6, 1380));
  const Packet later6 =
      Ip6{} / Fragment6{.offset = 181, .id = 9, .next_header = 17} / payload(1440);
  CHECK(lb.handle(Eth{} / later6) == packet_too_big(later6, 1380));
}

// SPDX-License-Identifier: Apache-2.0
// What a VIP does with packets that are for none of its services: echo requests, unknown ports
// (field reports: cilium#28458, where they ran in circles between gateway and nodes).
#include "tests/dsl/expect.h"
#include "tests/dsl/samples.h"

using namespace holdfast;
using namespace holdfast::dsl;

namespace {

const Ip client4 = "198.51.100.7";
const Ip client6 = "2001:db8:51::7";
const Ip vip4 = "203.0.113.10";
const Ip vip6 = "2001:db8::10";

ServiceSpec web() { return service({vip4, vip6}, tcp(80)).to("192.0.2.21"); }

Packet ping4(std::size_t size = 56) {
  return Ip4{} / Icmp{.type = 8, .rest = 0x00010002} / payload(size);
}
Packet ping6(std::size_t size = 56) {
  return Ip6{} / Icmp6{.type = 128, .rest = 0x00010002} / payload(size);
}
Packet pong4(std::size_t size = 56) {
  return Ip4{.src = vip4, .dst = client4} / Icmp{.type = 0, .rest = 0x00010002} / payload(size);
}
Packet pong6(std::size_t size = 56) {
  return Ip6{.src = vip6, .dst = client6} / Icmp6{.type = 129, .rest = 0x00010002} / payload(size);
}

/// The front of a frame that goes back where the usual ones come from.
const Eth back = from_lb;

Packet reset4() {
  return Ip4{.src = vip4, .dst = client4} /
         Tcp{.sport = 81, .dport = 40000, .flags = Rst | Ack, .seq = 0, .ack = 2, .window = 0};
}
Packet reset6() {
  return Ip6{.src = vip6, .dst = client6} /
         Tcp{.sport = 81, .dport = 40000, .flags = Rst | Ack, .seq = 0, .ack = 2, .window = 0};
}

}  // namespace

TEST_CASE("a ping to a VIP is answered") {
  LbUnderTest lb{web()};
  for (const std::size_t size : {0u, 1u, 56u, 1472u}) {
    CHECK(lb.handle(Eth{} / ping4(size)) == answered(back / pong4(size)));
    CHECK(lb.handle(Eth{} / ping6(size)) == answered(back / pong6(size)));
  }
  CHECK(lb.counters().answered == 8);
  CHECK(lb.flows.table_counters().inserted == 0);
}

TEST_CASE("a ping is answered while no backend lives: it says that the VIP is here") {
  LbUnderTest lb{service({vip4, vip6}, tcp(80))};
  CHECK(lb.handle(Eth{} / ping4()) == answered(back / pong4()));
  CHECK(lb.handle(Eth{} / ping6()) == answered(back / pong6()));
}

TEST_CASE("a ping with Ethernet padding comes back without it") {
  LbUnderTest lb{web()};
  CHECK(lb.handle((Eth{} / ping4(2)).padded_to(60)) == answered(back / pong4(2)));
}

TEST_CASE("an answer goes back by its port, to the MAC address that sent, with the same tags") {
  LbUnderTest lb{web()};
  const Eth other{.src = "02:00:00:00:00:ab", .dst = "02:00:00:00:00:cd"};
  const Eth turned{.src = other.dst, .dst = other.src};
  for (const auto& [ping, pong] : {std::pair{ping4(), pong4()}, std::pair{ping6(), pong6()}}) {
    CHECK(lb.handle(other / ping, {.port = 3}) == answered(turned / pong, 3));
    const Vlan tag{.id = 7, .priority = 5};
    CHECK(lb.handle(other / tag / ping) == answered(turned / tag / pong));
    const Vlan outer{.id = 9, .tpid = 0x88a8};
    CHECK(lb.handle(other / outer / tag / ping, {.port = 1}) ==
          answered(turned / outer / tag / pong, 1));
    // A tag that the NIC took out of the bytes goes back in.
    const MbufShape stripped{.ol_flags = RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED,
                             .vlan_tci = 5 << 13 | 7};
    CHECK(lb.handle(other / ping, stripped) ==
          answered(turned / Vlan{.id = 7, .priority = 10} / pong));
    CHECK(lb.handle(other / Vlan{.id = 3} / ping, stripped) ==
          answered(turned / Vlan{.id = 7, .priority = 10} / Vlan{.id = 3} / pong));
  }
}

TEST_CASE("with echo off a ping to the VIP is dropped, and only to that one") {
  LbUnderTest lb{web().without_echo(), service("203.0.113.11", tcp(80)).to("192.0.2.21")};
  CHECK(lb.handle(Eth{} / ping4()) == dropped(DropReason::echo_off));
  CHECK(lb.handle(Eth{} / ping6()) == dropped(DropReason::echo_off));
  const Ip other = "203.0.113.11";
  CHECK(lb.handle(Eth{} / Ip4{.dst = other} / Icmp{.type = 8}) ==
        answered(back / Ip4{.src = other, .dst = client4} / Icmp{.type = 0}));
}

TEST_CASE("a ping to another address is the kernel's") {
  LbUnderTest lb{web()};
  const Packet ping = Eth{} / Ip4{.dst = "203.0.113.99"} / Icmp{.type = 8};
  CHECK(lb.handle(ping) == to_kernel(ping));
}

TEST_CASE("a fragmented ping is not answered: nothing is put together here") {
  LbUnderTest lb{web()};
  const Packet first4 =
      Ip4{.id = 5, .df = false, .more_fragments = true} / Icmp{.type = 8} / payload(1472);
  CHECK(lb.handle(Eth{} / first4) == dropped(DropReason::icmp_not_routed));
  const Packet first6 =
      Ip6{} / Fragment6{.more = true, .id = 5} / Icmp6{.type = 128} / payload(1232);
  CHECK(lb.handle(Eth{} / first6) == dropped(DropReason::icmp_not_routed));
  // An atomic fragment is whole (RFC 6946).
  CHECK(lb.handle(Eth{} / Ip6{} / Fragment6{.id = 5} / Icmp6{.type = 128, .rest = 0x00010002} /
                  payload(56)) == answered(back / pong6()));
}

TEST_CASE("pings are answered at their rate, with a burst of one second") {
  LbUnderTest lb({web()}, {.icmp_answer_rate = 100});
  const auto answers = [&](int sent_in) {
    int count = 0;
    for (int i = 0; i < sent_in; ++i) {
      const Handled handled = lb.handle(Eth{} / (i % 2 == 0 ? ping4() : ping6()));
      if (handled.kind == Handled::Kind::answered)
        ++count;
      else
        REQUIRE(handled == dropped(DropReason::answer_rate_limited));
    }
    return count;
  };
  CHECK(answers(300) == 100);
  lb.pass(std::chrono::milliseconds(100));
  CHECK(answers(300) == 10);
  lb.pass(std::chrono::hours(1));
  CHECK(answers(300) == 100);
}

TEST_CASE("a flood of pings takes nothing from other answers, and a rate of 0 answers nothing") {
  LbUnderTest lb({web().rejecting()}, {.icmp_answer_rate = 5});
  for (int i = 0; i < 100; ++i) lb.handle(Eth{} / ping4());
  CHECK(lb.handle(Eth{} / ping4()) == dropped(DropReason::answer_rate_limited));
  const Packet syn = Ip4{} / Tcp{.dport = 81, .flags = Syn, .seq = 1};
  CHECK(lb.handle(Eth{} / syn) == answered(back / reset4()));
  // RST and port unreachable share one rate.
  for (int i = 0; i < 4; ++i)
    CHECK(lb.handle(Eth{} / Ip4{} / Udp{.dport = 81}).kind == Handled::Kind::answered);
  CHECK(lb.handle(Eth{} / syn) == dropped(DropReason::answer_rate_limited));

  LbUnderTest silent({web().rejecting()}, {.icmp_answer_rate = 0});
  CHECK(silent.handle(Eth{} / ping4()) == dropped(DropReason::answer_rate_limited));
  CHECK(silent.handle(Eth{} / syn) == dropped(DropReason::answer_rate_limited));
}

TEST_CASE("an unknown port is dropped unless its VIP rejects") {
  LbUnderTest lb{web()};
  CHECK(lb.handle(Eth{} / Ip4{} / Tcp{.dport = 81, .flags = Syn}) ==
        dropped(DropReason::unknown_port));
  CHECK(lb.handle(Eth{} / Ip6{} / Udp{.dport = 81}) == dropped(DropReason::unknown_port));
}

TEST_CASE("a VIP that rejects resets TCP and says port unreachable to UDP") {
  LbUnderTest lb{web().rejecting()};
  CHECK(lb.handle(Eth{} / Ip4{} / Tcp{.dport = 81, .flags = Syn, .seq = 1}) ==
        answered(back / reset4()));
  CHECK(lb.handle(Eth{} / Ip6{} / Tcp{.dport = 81, .flags = Syn, .seq = 1}) ==
        answered(back / reset6()));
  const Packet late = Ip4{} / Tcp{.dport = 81, .flags = Ack, .seq = 5, .ack = 77} / payload(10);
  CHECK(lb.handle(Eth{} / late) ==
        answered(back / Ip4{.src = vip4, .dst = client4} /
                 Tcp{.sport = 81, .dport = 40000, .flags = Rst, .seq = 77, .window = 0}));

  const Packet udp4 = Ip4{} / Udp{.dport = 80} / payload(700);
  CHECK(lb.handle(Eth{} / udp4) == answered(back / Ip4{.src = vip4, .dst = client4, .dscp = 48} /
                                            Icmp{.type = 3, .code = 3} / quote(udp4, 548)));
  const Packet udp6 = Ip6{} / Udp{.dport = 80} / payload(1400);
  CHECK(lb.handle(Eth{} / udp6) == answered(back / Ip6{.src = vip6, .dst = client6, .dscp = 48} /
                                            Icmp6{.type = 1, .code = 4} / quote(udp6, 1232)));
  // Its services are served as ever.
  CHECK(lb.handle(Eth{} / Ip4{} / Tcp{.flags = Syn}).kind == Handled::Kind::sent);
}

TEST_CASE("what may not be rejected is dropped") {
  LbUnderTest lb{web().rejecting()};
  const auto forbidden = dropped(DropReason::answer_forbidden);
  CHECK(lb.handle(Eth{} / Ip4{} / Tcp{.dport = 81, .flags = Rst}) == forbidden);
  CHECK(lb.handle(Eth{} / Ip6{} / Tcp{.dport = 81, .flags = Rst | Ack}) == forbidden);
  const Packet syn = Ip4{} / Tcp{.dport = 81, .flags = Syn};
  CHECK(lb.handle(Eth{.dst = "ff:ff:ff:ff:ff:ff"} / syn) == forbidden);
  CHECK(lb.handle(Eth{.dst = "01:00:5e:00:00:01"} / syn) == forbidden);
  CHECK(lb.handle(Eth{.src = "03:00:00:00:00:01"} / syn) == forbidden);
  CHECK(lb.handle((Eth{} / syn).bad_checksum()) == forbidden);
  CHECK(lb.handle(Eth{.dst = "33:33:00:00:00:01"} / ping6()) == forbidden);
  // An error about a port that is no service's stays what it was.
  const Packet error = Ip4{} / Icmp{.type = 3, .code = 1} /
                       quote(Ip4{.src = vip4, .dst = client4} / Tcp{.sport = 81}, 28);
  CHECK(lb.handle(Eth{} / error) == dropped(DropReason::icmp_unknown_service));
}

TEST_CASE("two VIPs do not talk to each other, whoever forges that") {
  LbUnderTest lb{web().rejecting(), service("203.0.113.11", tcp(80)).to("192.0.2.21").rejecting()};
  const Ip4 between{.src = "203.0.113.11"};
  CHECK(lb.handle(Eth{} / between / Tcp{.dport = 81, .flags = Syn}).kind == Handled::Kind::dropped);
  CHECK(lb.handle(Eth{} / between / Udp{.dport = 81}).kind == Handled::Kind::dropped);
  CHECK(lb.handle(Eth{} / between / Icmp{.type = 8}).kind == Handled::Kind::dropped);
}

TEST_CASE("an answer that the port refuses is a drop") {
  LbUnderTest lb{web()};
  lb.io.transmit_room[PortNumber{0}] = 0;
  CHECK(lb.handle(Eth{} / ping4()) == dropped(DropReason::tx_full));
  CHECK(lb.counters().answered == 0);
}

TEST_CASE("answers and tunnelled packets of one burst leave in the order of arrival") {
  LbUnderTest lb{web().rejecting()};
  const Packet data = Ip4{} / Tcp{} / payload(10);
  const auto all = lb.handle_all({Eth{} / data, Eth{} / ping4(), Eth{} / data,
                                  Eth{} / Ip4{} / Tcp{.dport = 81, .flags = Rst}, Eth{} / ping6()});
  REQUIRE(all.size() == 5);
  CHECK(all[0].kind == Handled::Kind::sent);
  CHECK(all[1] == answered(back / pong4()));
  CHECK(all[2].kind == Handled::Kind::sent);
  CHECK(all[3] == dropped(DropReason::answer_forbidden));
  CHECK(all[4] == answered(back / pong6()));
}

TEST_CASE("nothing that comes for a VIP goes on to where it would come back from") {
  // Whatever it is: it leaves in a tunnel to a backend, or as an answer from the VIP, or not.
  LbUnderTest lb{web().rejecting()};
  std::vector<Packet> packets = sample_packets();
  for (unsigned protocol = 0; protocol < 256; ++protocol) {
    const auto number = static_cast<std::uint8_t>(protocol);
    packets.push_back(Eth{} / Ip4{.protocol = number} / payload(64));
    packets.push_back(Eth{} / Ip6{.next_header = number} / payload(64));
  }
  for (unsigned type = 0; type < 256; ++type) {
    const auto number = static_cast<std::uint8_t>(type);
    packets.push_back(Eth{} / Ip4{} / Icmp{.type = number} / payload(64));
    packets.push_back(Eth{} / Ip6{} / Icmp6{.type = number} / payload(64));
  }
  for (const Packet& packet : packets) {
    const Handled handled = lb.handle(packet);
    if (handled.kind != Handled::Kind::sent && handled.kind != Handled::Kind::answered) continue;
    const Packet left = decode(handled.frame);
    for (const Layer& found : left.layers()) {
      const auto* v4 = std::get_if<Ip4>(&found);
      const auto* v6 = std::get_if<Ip6>(&found);
      if (v4 == nullptr && v6 == nullptr) continue;
      // The first IP header is the one that routers look at.
      INFO(describe(packet) << "\nbecame " << describe(left));
      CHECK((v4 != nullptr ? v4->dst != vip4 : v6->dst != vip6));
      break;
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// What is not for a VIP is not ours to judge: it goes to the kernel exactly as it came, whatever
// its faults, or is counted when the port has no way there.
#include "tests/dsl/expect.h"

using namespace holdfast;
using namespace holdfast::dsl;

namespace {

ServiceSpec web() { return service({"203.0.113.10", "2001:db8::10"}, tcp(80)).to("192.0.2.21"); }
const Ip other4 = "203.0.113.99";
const Ip other6 = "2001:db8::99";

/// Of all kinds that a host on a network sees.
std::vector<std::pair<const char*, Packet>> not_ours() {
  return {
      {"ARP", Eth{.dst = "ff:ff:ff:ff:ff:ff", .type = 0x0806} / payload(28)},
      {"ARP with a tag", Eth{} / Vlan{.type = 0x0806} / payload(28)},
      {"LLDP", Eth{.type = 0x88cc} / payload(50)},
      {"an IEEE 802.3 length instead of a type", Eth{.type = 40} / payload(40)},
      {"an EtherType and nothing behind it", Eth{.type = 0x86de}},
      {"TCP to another address", Eth{} / Ip4{.dst = other4} / Tcp{}},
      {"TCP over IPv6 to another address", Eth{} / Ip6{.dst = other6} / Tcp{}},
      {"UDP with a tag", Eth{} / Vlan{} / Ip4{.dst = other4} / Udp{} / payload(3)},
      {"OSPF", Eth{} / Ip4{.dst = "224.0.0.5", .protocol = 89} / payload(44)},
      {"GRE", Eth{} / Ip4{.dst = other4, .protocol = 47} / payload(44)},
      {"echo request", Eth{} / Ip4{.dst = other4} / Icmp{.type = 8} / payload(56)},
      {"neighbour solicitation",
       Eth{} / Ip6{.dst = "ff02::1:ff00:99"} / Icmp6{.type = 135} / payload(24)},
      {"an ICMP error", Eth{} / Ip4{.dst = other4} / Icmp{} / quote(Ip4{} / Tcp{}, 28)},
      {"an ICMP error with a good quote",
       Eth{} / Ip4{.dst = other4} / Icmp{} / quote(Ip4{.src = other4} / Tcp{}, 28)},
      {"DHCP from nowhere",
       Eth{} / Ip4{.src = "0.0.0.0", .dst = "255.255.255.255"} / Udp{.sport = 68, .dport = 67}},
      {"duplicate address detection",
       Eth{} / Ip6{.src = "::", .dst = "ff02::1:ff00:99"} / Icmp6{.type = 135} / payload(24)},
      {"a first fragment", Eth{} / Ip4{.dst = other4, .more_fragments = true} / Udp{}},
      {"a later fragment",
       Eth{} / Ip4{.dst = other4, .fragment_offset = 2, .protocol = 17} / payload(8)},
      {"an IPv6 fragment", Eth{} / Ip6{.dst = other6} / Fragment6{.more = true} / Udp{}},
      {"a bad header length", Eth{} / Ip4{.dst = other4, .ihl = 4} / Tcp{}},
      {"a bad total length", Eth{} / Ip4{.dst = other4, .total_length = 2000} / Tcp{}},
      {"a bad payload length", Eth{} / Ip6{.dst = other6, .payload_length = 2000} / Tcp{}},
      {"a cut TCP header", Eth{} / Ip4{.dst = other4, .protocol = 6} / payload(3)},
      {"a bad TCP header length", Eth{} / Ip4{.dst = other4} / Tcp{.data_offset = 2}},
      {"a source route", Eth{} / Ip6{.dst = other6} / Routing{.segments_left = 1} / Tcp{}},
      {"an IPv4-mapped VIP", Eth{} / Ip6{.dst = "::ffff:203.0.113.10"} / Tcp{.dport = 80}},
  };
}

}  // namespace

TEST_CASE("what is not for a VIP goes to the kernel as it came") {
  LbUnderTest lb{web()};
  for (const auto& [what, packet] : not_ours()) {
    INFO(what);
    CHECK(lb.handle(packet) == to_kernel(packet));
    CHECK(lb.handle(packet.padded_to(128)) == to_kernel(packet.padded_to(128)));
  }
}

TEST_CASE("what is not for a VIP is counted when there is no way to the kernel") {
  LbUnderTest lb{web()};
  lb.io.has_kernel = false;
  for (const auto& [what, packet] : not_ours()) {
    INFO(what);
    CHECK(lb.handle(packet) == dropped(DropReason::no_kernel_path));
  }
  CHECK(lb.dropped_for(DropReason::no_kernel_path) == not_ours().size());
}

TEST_CASE("more than two VLAN tags go to the kernel, even to a VIP") {
  LbUnderTest lb{web()};
  const auto three =
      Eth{} / Vlan{.id = 3, .tpid = 0x88a8} / Vlan{.id = 2} / Vlan{.id = 1} / Ip4{} / Tcp{};
  CHECK(lb.handle(three) == to_kernel(three));
  const auto four = Eth{} / Vlan{} / Vlan{} / Vlan{} / Vlan{} / Ip6{} / Tcp{};
  CHECK(lb.handle(four) == to_kernel(four));
}

TEST_CASE("tags that the NIC took out of the frame count as tags") {
  LbUnderTest lb{web()};
  const auto two = Eth{} / Vlan{.id = 2} / Vlan{.id = 1} / Ip4{} / Tcp{};
  const auto one = Eth{} / Vlan{.id = 1} / Ip4{} / Tcp{};
  const MbufShape one_stripped{.ol_flags = RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED};
  const MbufShape two_stripped{.ol_flags = RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED |
                                           RTE_MBUF_F_RX_QINQ | RTE_MBUF_F_RX_QINQ_STRIPPED};
  CHECK(lb.handle(two, one_stripped) == to_kernel(two));
  CHECK(lb.handle(one, two_stripped) == to_kernel(one));
  CHECK(lb.handle(one, one_stripped).kind == Handled::Kind::sent);
}

TEST_CASE("a packet in several buffers that is not for a VIP goes to the kernel whole") {
  LbUnderTest lb{web()};
  const auto packet = Eth{} / Ip4{.dst = other4} / Tcp{} / payload(500);
  CHECK(lb.handle(packet, {.first_segment = 100}) == to_kernel(packet));
}

TEST_CASE("a flagged checksum of a packet that is not for a VIP is the kernel's affair") {
  LbUnderTest lb{web()};
  const auto packet = Eth{} / (Ip4{.dst = other4} / Tcp{}).bad_checksum();
  CHECK(lb.handle(packet, {.ol_flags = RTE_MBUF_F_RX_IP_CKSUM_BAD}) == to_kernel(packet));
}

TEST_CASE("the kernel takes some packets and refuses others: each is counted once") {
  LbUnderTest lb{web()};
  const auto packet = Eth{} / Ip4{.dst = other4} / Tcp{};
  CHECK(lb.handle(packet) == to_kernel(packet));
  lb.io.has_kernel = false;
  CHECK(lb.handle(packet) == dropped(DropReason::no_kernel_path));
  CHECK(lb.counters().to_kernel == 1);
  CHECK(lb.dropped_for(DropReason::no_kernel_path) == 1);
}

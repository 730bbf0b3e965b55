// SPDX-License-Identifier: Apache-2.0
#include "tests/dsl/samples.h"

namespace holdfast::dsl {

std::vector<ServiceSpec> sample_services() {
  return {
      service({"203.0.113.10", "2001:db8::10"}, tcp(80))
          .to("192.0.2.21")
          .to("192.0.2.22")
          .to("2001:db8:100::23"),
      service({"203.0.113.10", "2001:db8::10"}, udp(443))
          .to("2001:db8:100::31")
          .to(backend("192.0.2.32").over({Hop{.vlan = 300}, Hop{.port = 1}})),
  };
}

std::vector<Packet> sample_packets() {
  const Packet answer4 = Ip4{.src = "203.0.113.10", .dst = "198.51.100.7"} /
                         Tcp{.sport = 80, .dport = 40000} / payload(100);
  const Packet answer6 = Ip6{.src = "2001:db8::10", .dst = "2001:db8:51::7"} / HopByHop{} /
                         Udp{.sport = 443, .dport = 40000} / payload(100);
  return {
      Eth{} / Ip4{} / Tcp{.flags = Syn, .options = {2, 4, 5, 180, 4, 2, 8, 10, 0, 0,
                                                    0, 1, 0, 0,   0, 0, 1, 3,  3, 7}},
      Eth{} / Ip4{} / Tcp{.flags = Ack | Psh} / payload(300),
      (Eth{} / Ip4{} / Tcp{.flags = Fin | Ack}).padded_to(60),
      Eth{} / Ip4{} / Tcp{.flags = Rst},
      Eth{} / Ip4{.ecn = 3, .options = {0x94, 4, 0, 0, 1, 1, 1, 0}} / Udp{} / payload(50),
      Eth{} / Vlan{.id = 7} / Ip4{.df = false} / Udp{} / payload(1200),
      Eth{} / Ip6{.flow_label = 99} / Tcp{.flags = Syn},
      Eth{} / Vlan{.tpid = 0x88a8} / Vlan{.id = 9} / Ip6{.dscp = 46} / Udp{} / payload(80),
      Eth{} / Ip6{} / HopByHop{} / DestinationOptions{} / Routing{} / Fragment6{} /
          Authentication{} / Tcp{} / payload(20),
      Eth{} / Ip6{} / Fragment6{.more = true, .id = 5} / Udp{} / payload(64),
      Eth{} / Ip4{.more_fragments = true} / Udp{} / payload(64),
      Eth{} / Ip4{.fragment_offset = 9, .protocol = 17} / payload(64),
      Eth{} / Ip4{.src = "198.51.100.254"} / Icmp{.type = 3, .code = 4, .rest = 1400} /
          quote(answer4, 28),
      Eth{} / Ip4{.src = "198.51.100.254"} / Icmp{.type = 11} / answer4,
      Eth{} / Ip6{.src = "2001:db8:51::fe"} / Icmp6{.type = 2, .rest = 1400} / answer6,
      Eth{} / Ip4{} / Icmp{.type = 8} / payload(56),
      Eth{} / Ip6{} / Icmp6{.type = 135} / payload(24),
      Eth{.dst = "ff:ff:ff:ff:ff:ff", .type = 0x0806} / payload(28),
      Eth{} / Ip4{.dst = "203.0.113.99"} / Tcp{},
      Eth{} / Ip6{} / Ip4{} / Tcp{},
  };
}

}  // namespace holdfast::dsl

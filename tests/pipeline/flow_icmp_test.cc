// SPDX-License-Identifier: Apache-2.0
// An ICMP error goes where the flow goes that it quotes, and changes nothing about that flow.
#include <array>

#include "tests/pipeline/flows.h"

using namespace holdfast;
using namespace holdfast::dsl;

namespace {

/// A router tells the VIP that what it sent to a client was too big.
Packet too_big(std::uint16_t client) {
  return Eth{} / Ip4{.src = "198.51.100.1"} / Icmp{.type = 3, .code = 4, .rest = 1400} /
         Ip4{.src = "203.0.113.10", .dst = "198.51.100.7"} / Tcp{.sport = 80, .dport = client};
}

}  // namespace

TEST_CASE("an ICMP error follows a flow that only the table knows") {
  LbUnderTest lb{web({kB1, kB2})};
  const auto client = open_flows_on(lb, kB2, 1).front();
  set_state(lb, kB2, BackendState::draining);
  CHECK(goes_to(lb, too_big(client)) == kB2);
}

TEST_CASE("an ICMP error about an unknown flow goes where its SYN would go, and records nothing") {
  LbUnderTest lb{web({kB1, kB2, kB3})};
  for (std::uint16_t client = 1000; client < 1050; ++client) {
    const Ip there = goes_to(lb, too_big(client));
    REQUIRE(lb.flows.table_counters().embryonic == client - 1000u);
    REQUIRE(goes_to(lb, syn(client)) == there);
  }
}

TEST_CASE("ICMP errors keep no flow alive") {
  LbUnderTest lb{web({kB1, kB2})};
  const auto client = open_flows_on(lb, kB2, 1).front();
  CHECK(goes_to(lb, fin(client)) == kB2);
  set_state(lb, kB2, BackendState::draining);
  for (int i = 0; i < 6; ++i) {
    CHECK(goes_to(lb, too_big(client)) == kB2);
    lb.pass(10s);
  }
  CHECK(goes_to(lb, ack(client)) == kB1);  // closed and silent for 60 s
}

TEST_CASE("an ICMP error does not follow an entry that has expired but was not swept yet") {
  LbUnderTest lb{web({kB1, kB2})};
  const auto client = open_flows_on(lb, kB2, 1).front();
  CHECK(goes_to(lb, fin(client)) == kB2);
  set_state(lb, kB2, BackendState::draining);
  lb.pass(59s);
  CHECK(goes_to(lb, too_big(client)) == kB2);
  lb.pass(1s);
  CHECK(goes_to(lb, too_big(client)) == kB1);
  CHECK(lb.flows.table_counters().closing == 1);  // it is still there, and the sweep's to remove
  CHECK(lb.flows.table_counters().expired == 0);
}

TEST_CASE("ICMP errors establish and prove nothing") {
  LbUnderTest lb{web({kB1})};
  static_cast<void>(goes_to(lb, syn(1000)));
  for (int i = 0; i < 5; ++i) CHECK(goes_to(lb, too_big(1000)) == kB1);
  CHECK(lb.flows.table_counters().embryonic == 1);
  CHECK(lb.flows.table_counters().established == 0);
}

TEST_CASE("an ICMP error follows a flow in another worker's table and leaves it there") {
  LbUnderTest one{web({kB1, kB2})};
  LbUnderTest two{web({kB1, kB2})};
  const std::array both{&one.flows, &two.flows};
  FlowContext::connect(both);
  const auto client = open_flows_on(one, kB2, 1).front();
  set_state(two, kB2, BackendState::draining);
  CHECK(goes_to(two, too_big(client)) == kB2);
  CHECK(two.flows.table_counters().inserted == 0);
  one.flows.tend(one.snapshot(), one.time, 0);
  CHECK(one.flows.table_counters().handed_over == 0);
}

TEST_CASE("an ICMP error about a flow whose backend is gone goes by Maglev") {
  LbUnderTest lb{web({kB1, kB2})};
  const auto client = open_flows_on(lb, kB2, 1).front();
  lb.backend(kB2).removed = true;
  lb.publish();
  CHECK(goes_to(lb, too_big(client)) == kB1);
}

TEST_CASE("a QUIC flow on a draining backend gets its ICMP errors, whichever worker they come to") {
  LbUnderTest one{udp_web({kB1, kB2})};
  LbUnderTest two{udp_web({kB1, kB2})};
  const std::array both{&one.flows, &two.flows};
  FlowContext::connect(both);
  std::uint16_t client = 1000;
  while (goes_to(one, datagram(client)) != kB2) ++client;
  // As much of a long packet as RFC 1812 lets a router quote.
  const Packet answer = Ip4{.src = "203.0.113.10", .dst = "198.51.100.7"} /
                        Udp{.sport = 443, .dport = client} / payload(1200);
  const Packet error = Eth{} / Ip4{.src = "198.51.100.1"} /
                       Icmp{.type = 3, .code = 4, .rest = 1280} / quote(answer, 576 - 28);
  for (LbUnderTest* lb : {&one, &two}) {
    set_state(*lb, kB2, BackendState::draining);
    CHECK(goes_to(*lb, error) == kB2);
  }
  CHECK(two.flows.table_counters().inserted == 0);
}

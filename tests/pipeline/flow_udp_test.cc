// SPDX-License-Identifier: Apache-2.0
// UDP flows: no SYN, no FIN, only the clock tells.
#include "tests/pipeline/flows.h"

using namespace holdfast;
using namespace holdfast::dsl;

namespace {

Ip open_udp(LbUnderTest& lb, std::uint16_t client) {
  const Ip backend = goes_to(lb, datagram(client));
  REQUIRE(goes_to(lb, datagram(client)) == backend);
  return backend;
}

std::uint16_t open_udp_on(LbUnderTest& lb, Ip backend) {
  std::uint16_t client = 1000;
  while (open_udp(lb, client) != backend) ++client;
  return client;
}

}  // namespace

TEST_CASE("UDP: the first packet is a new flow, the second makes it established") {
  LbUnderTest lb{udp_web({kB1, kB2})};
  const Ip backend = goes_to(lb, datagram(1000));
  CHECK(lb.counters_of_backend(backend).embryonic == 1);
  CHECK(lb.flows.table_counters().new_flows == 1);
  CHECK(goes_to(lb, datagram(1000)) == backend);
  CHECK(lb.counters_of_backend(backend).active == 1);
  CHECK(lb.counters_of_backend(backend).embryonic == 0);
  CHECK(lb.counters_of_backend(backend).new_flows == 1);
}

TEST_CASE("UDP: a flow stays while it speaks once in 120 s") {
  LbUnderTest lb{udp_web({kB1, kB2})};
  const auto client = open_udp_on(lb, kB2);
  set_state(lb, kB2, BackendState::draining);
  for (int i = 0; i < 20; ++i) {
    lb.pass(119s);
    CHECK(goes_to(lb, datagram(client)) == kB2);
  }
  lb.pass(120s);
  CHECK(goes_to(lb, datagram(client)) == kB1);
}

TEST_CASE("UDP: even a single packet is remembered for 120 s") {
  LbUnderTest lb{udp_web({kB1, kB2})};
  std::uint16_t client = 1000;
  while (goes_to(lb, datagram(client)) != kB2) ++client;
  set_state(lb, kB2, BackendState::draining);
  lb.pass(119s);
  CHECK(goes_to(lb, datagram(client)) == kB2);
}

TEST_CASE("UDP: at the end of a drain flows are placed anew") {
  LbUnderTest lb{udp_web({kB1, kB2})};
  const auto client = open_udp_on(lb, kB2);
  set_state(lb, kB2, BackendState::draining);
  CHECK(goes_to(lb, datagram(client)) == kB2);
  lb.backend(kB2).keeps_udp = false;
  lb.publish();
  CHECK(goes_to(lb, datagram(client)) == kB1);
}

TEST_CASE("UDP: udp_on_drain = repick leaves a draining backend at once") {
  ServiceSpec dns = udp_web({kB1, kB2});
  dns.settings.udp_repick_on_drain = true;
  LbUnderTest lb{dns};
  const auto client = open_udp_on(lb, kB2);
  set_state(lb, kB2, BackendState::draining);
  CHECK(goes_to(lb, datagram(client)) == kB1);
  CHECK(lb.flows.table_counters().repicked == 1);
}

TEST_CASE("UDP: with nothing better than the draining backend a flow stays and is not new") {
  ServiceSpec dns = udp_web({kB1, kB2});
  dns.settings.udp_repick_on_drain = true;
  LbUnderTest lb{dns};
  const auto client = open_udp_on(lb, kB2);
  lb.backend(kB1).removed = true;
  set_state(lb, kB2, BackendState::draining);
  const auto before = new_flows(lb, kB2);
  for (int i = 0; i < 10; ++i) CHECK(goes_to(lb, datagram(client)) == kB2);
  CHECK(new_flows(lb, kB2) == before);
}

TEST_CASE("UDP: flows leave a backend that is down at once") {
  LbUnderTest lb{udp_web({kB1, kB2})};
  const auto client = open_udp_on(lb, kB2);
  lb.backend(kB2).keeps_udp = false;
  set_state(lb, kB2, BackendState::down);
  CHECK(goes_to(lb, datagram(client)) == kB1);
}

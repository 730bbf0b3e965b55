// SPDX-License-Identifier: Apache-2.0
// Services with udp = "stateless": Maglev alone decides about each packet, and nothing is stored.
#include <array>

#include "lb/flow/lookup.h"
#include "tests/pipeline/flows.h"

using namespace holdfast;
using namespace holdfast::dsl;

namespace {

ServiceSpec dns(std::initializer_list<Ip> backends) {
  ServiceSpec spec = udp_web(backends);
  spec.settings.stateless = true;
  return spec;
}

/// A router tells the VIP that what it answered to a client was too big.
Packet too_big(std::uint16_t client) {
  return Eth{} / Ip4{.src = "198.51.100.1"} / Icmp{.type = 3, .code = 4, .rest = 1400} /
         Ip4{.src = "203.0.113.10", .dst = "198.51.100.7"} / Udp{.sport = 443, .dport = client};
}

/// A client whose slot is the backend's by Maglev.
std::uint16_t client_of(LbUnderTest& lb, Ip backend) {
  std::uint16_t client = 1000;
  while (goes_to(lb, datagram(client)) != backend) ++client;
  return client;
}

void require_nothing_stored(const LbUnderTest& lb) {
  const FlowTableCounters counters = lb.flows.table_counters();
  REQUIRE(counters.inserted == 0);
  REQUIRE(counters.embryonic == 0);
  REQUIRE(counters.established == 0);
  REQUIRE(counters.new_flows == 0);
  REQUIRE(counters.hits == 0);
  REQUIRE(counters.not_recorded == 0);
}

}  // namespace

TEST_CASE("stateless: packets go where Maglev says, and no table remembers them") {
  LbUnderTest flows{udp_web({kB1, kB2, kB3})};
  LbUnderTest lb{dns({kB1, kB2, kB3})};
  for (std::uint16_t client = 1000; client < 1200; ++client) {
    const Ip backend = goes_to(lb, datagram(client));
    REQUIRE(backend == goes_to(flows, datagram(client)));
    REQUIRE(goes_to(lb, datagram(client)) == backend);
  }
  require_nothing_stored(lb);
}

TEST_CASE("stateless: packets are counted for service and backend, flows are not") {
  LbUnderTest lb{dns({kB1})};
  for (std::uint16_t client = 1000; client < 1010; ++client)
    static_cast<void>(goes_to(lb, datagram(client)));
  CHECK(lb.counters_of_service(0).packets == 10);
  CHECK(lb.counters_of_backend(kB1).packets == 10);
  CHECK(lb.counters_of_backend(kB1).active == 0);
  CHECK(lb.counters_of_backend(kB1).new_flows == 0);
}

TEST_CASE("stateless: a client leaves a backend that takes no new flows, and comes back to it") {
  LbUnderTest lb{dns({kB1, kB2})};
  const auto client = client_of(lb, kB2);
  for (const auto state : {BackendState::draining, BackendState::down, BackendState::weight_zero,
                           BackendState::unchecked, BackendState::next_hop_lost}) {
    set_state(lb, kB2, state);
    CHECK(goes_to(lb, datagram(client)) == kB1);
    set_state(lb, kB2, BackendState::eligible);
    CHECK(goes_to(lb, datagram(client)) == kB2);
  }
  require_nothing_stored(lb);
}

TEST_CASE("stateless: without a backend that takes new flows packets are dropped") {
  LbUnderTest lb{dns({kB1})};
  set_state(lb, kB1, BackendState::down);
  CHECK(lb.handle(datagram(1000)) == dropped(DropReason::no_backend));
}

TEST_CASE("stateless: an ICMP error goes where the client's packets go") {
  LbUnderTest lb{dns({kB1, kB2, kB3})};
  for (std::uint16_t client = 1000; client < 1050; ++client)
    REQUIRE(goes_to(lb, too_big(client)) == goes_to(lb, datagram(client)));
  const auto client = client_of(lb, kB2);
  set_state(lb, kB2, BackendState::down);  // of a flow's service it would follow the grace
  CHECK(goes_to(lb, too_big(client)) == goes_to(lb, datagram(client)));
  require_nothing_stored(lb);
}

TEST_CASE("stateless: other workers are not asked, and no token is used up") {
  FlowOptions no_budget{.capacity = 10'000, .sibling_lookup_rate = 0};
  LbUnderTest one{dns({kB1, kB2}), {.flows = no_budget}};
  LbUnderTest two{dns({kB1, kB2}), {.flows = no_budget}};
  const std::array both{&one.flows, &two.flows};
  FlowContext::connect(both);
  for (std::uint16_t client = 1000; client < 1050; ++client) {
    REQUIRE(goes_to(one, datagram(client)) == goes_to(two, datagram(client)));
    REQUIRE(goes_to(one, too_big(client)) == goes_to(two, datagram(client)));
  }
  CHECK(one.flows.table_counters().sibling_refused == 0);
  CHECK(two.flows.table_counters().sibling_refused == 0);
}

TEST_CASE("stateless: packets of one burst do not wait for each other") {
  LbUnderTest lb{dns({kB1, kB2, kB3})};
  std::vector<Packet> packets;
  for (std::uint16_t i = 0; i < 32; ++i) packets.push_back(datagram(1000 + i / 4));
  const auto handled = lb.handle_all(packets);
  for (std::size_t i = 0; i < handled.size(); ++i)
    CHECK(destination(handled[i]) == destination(handled[i / 4 * 4]));
  require_nothing_stored(lb);
}

TEST_CASE("stateless: what a service remembered before it was made stateless counts no more") {
  LbUnderTest lb{udp_web({kB1, kB2})};
  const auto client = client_of(lb, kB2);
  CHECK(goes_to(lb, datagram(client)) == kB2);  // established
  set_state(lb, kB2, BackendState::draining);
  CHECK(goes_to(lb, datagram(client)) == kB2);
  lb.service(0).settings.stateless = true;
  lb.publish();
  CHECK(goes_to(lb, datagram(client)) == kB1);
  lb.pass(10s);
  lb.flows.tend(lb.snapshot(), lb.time, lb.flows.table.capacity());
  CHECK(lb.flows.table_counters().established == 0);
}

TEST_CASE("stateless: lookup says what the packets do, and asks no table") {
  LbUnderTest lb{dns({kB1, kB2, kB3})};
  const std::array<const FlowTable*, 2> tables{&lb.flows.table, &lb.flows.table};
  const auto look_up = [&](std::uint16_t client) {
    return look_up_flow({.protocol = IpProtocol::udp,
                         .client = Ip4{}.src,
                         .client_port = client,
                         .vip = Ip4{}.dst,
                         .vip_port = 443},
                        lb.snapshot(), tables);
  };
  for (const auto state : {BackendState::eligible, BackendState::draining, BackendState::down}) {
    set_state(lb, kB2, state);
    for (std::uint16_t client = 1000; client < 1050; ++client) {
      const FlowAnswer answer = look_up(client);
      REQUIRE(answer.stateless);
      REQUIRE(answer.tables.empty());
      REQUIRE(answer.workers.size() == 2);
      REQUIRE(answer.workers[0] == answer.workers[1]);
      REQUIRE(answer.workers[0].next.rule == FlowRule::stateless);
      REQUIRE(answer.workers[0].next.backend == answer.effective_owner);
      REQUIRE(goes_to(lb, datagram(client)) ==
              lb.snapshot().backend(answer.effective_owner)->address);
    }
  }
  for (const Ip& backend : {kB1, kB2, kB3}) set_state(lb, backend, BackendState::down);
  CHECK(look_up(1000).workers[0].next.dropped == DropReason::no_backend);
}

TEST_CASE("stateless: a source that is a VIP is refused") {
  LbUnderTest lb{dns({kB1})};
  lb.service(0).vips.emplace_back("203.0.113.11");
  lb.publish();
  CHECK(lb.handle(Eth{} / Ip4{.src = "203.0.113.11"} / Udp{}) ==
        dropped(DropReason::ipv4_source_is_vip));
}

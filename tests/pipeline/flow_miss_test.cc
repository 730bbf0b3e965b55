// SPDX-License-Identifier: Apache-2.0
// Packets of flows that the table does not know: after a restart, from another load balancer, or
// from nobody.
#include "tests/pipeline/flows.h"

using namespace holdfast;
using namespace holdfast::dsl;

TEST_CASE("a mid-flow packet goes where its SYN would go, and is recorded") {
  LbUnderTest before{web({kB1, kB2, kB3})};
  LbUnderTest after{web({kB1, kB2, kB3})};  // the same config after a restart
  for (std::uint16_t client = 1000; client < 1100; ++client)
    REQUIRE(goes_to(after, data(client)) == open_flow(before, client));
  CHECK(after.flows.table_counters().mid_flow_misses == 100);
  CHECK(after.flows.table_counters().embryonic == 100);
  CHECK(after.flows.table_counters().new_flows == 0);
  CHECK(after.counters_of_service(0).new_flows == 100);

  // And stays when the tables change.
  CHECK(goes_to(after, data(1000)) == open_flow(before, 1000));
  const Ip there = goes_to(after, data(1001));
  set_state(after, there, BackendState::draining);
  CHECK(goes_to(after, data(1001)) == there);
}

TEST_CASE("a FIN or RST that nobody knows is forwarded and not recorded") {
  LbUnderTest lb{web({kB1, kB2})};
  const Ip backend = goes_to(lb, fin(1000));
  CHECK(goes_to(lb, rst(1000)) == backend);
  CHECK(goes_to(lb, segment(1000, Syn | Fin)) == backend);
  CHECK(goes_to(lb, segment(1000, Syn | Rst)) == backend);
  CHECK(goes_to(lb, segment(1000, Fin | Ack, 50)) == backend);
  CHECK(lb.flows.table_counters().inserted == 0);
  CHECK(lb.counters_of_service(0).new_flows == 0);
  CHECK(goes_to(lb, syn(1000)) == backend);  // Maglev's choice it was
}

TEST_CASE("a FIN or RST on a flow whose backend is gone is forwarded and frees the entry") {
  LbUnderTest lb{web({kB1, kB2})};
  const auto client = open_flows_on(lb, kB2, 1).front();
  const auto entries = lb.flows.table_counters().established;
  lb.backend(kB2).removed = true;
  lb.publish();
  CHECK(goes_to(lb, rst(client)) == kB1);
  CHECK(lb.flows.table_counters().established == entries - 1);
  CHECK(lb.flows.table_counters().closing == 0);
  CHECK(new_flows(lb, kB1) == entries - 1);
}

TEST_CASE("while the first checks run, running flows find their backend and new ones wait") {
  LbUnderTest before{web({kB1, kB2, kB3})};
  LbUnderTest lb{web({kB1, kB2, kB3})};
  lb.backend(kB1).state = BackendState::unchecked;
  lb.backend(kB2).state = BackendState::unchecked;  // kB3's check was quicker
  lb.publish();
  for (std::uint16_t client = 1000; client < 1100; ++client) {
    const Ip there = open_flow(before, client);
    REQUIRE(goes_to(lb, data(client)) == there);
    const auto fresh = static_cast<std::uint16_t>(client + 10000);
    if (open_flow(before, fresh) == kB3)
      CHECK(goes_to(lb, syn(fresh)) == kB3);
    else
      CHECK(lb.handle(syn(fresh)) == dropped(DropReason::no_backend));
  }
  // kB1 passes, kB2 does not: its flows stay for its grace.
  lb.backend(kB1).state = BackendState::eligible;
  set_state(lb, kB2, BackendState::down);
  for (std::uint16_t client = 1000; client < 1100; ++client)
    REQUIRE(goes_to(lb, data(client)) == goes_to(before, data(client)));
  for (std::uint16_t client = 11000; client < 11100; ++client)
    CHECK(goes_to(lb, syn(client)) != kB2);
}

TEST_CASE(
    "flows that come from another balancer while their backend is down find it for its grace") {
  LbUnderTest other{web({kB1, kB2, kB3})};
  LbUnderTest lb{web({kB1, kB2, kB3})};
  set_state(lb, kB2, BackendState::down);
  int there = 0;
  for (std::uint16_t client = 1000; client < 1100; ++client) {
    const Ip placed = open_flow(other, client);
    there += placed == kB2;
    CHECK(goes_to(lb, data(client)) == placed);
    CHECK(goes_to(lb, syn(static_cast<std::uint16_t>(client + 10000))) != kB2);
  }
  CHECK(there > 10);
  lb.backend(kB2).keeps_tcp = false;  // its grace is over
  lb.publish();
  for (std::uint16_t client = 2000; client < 2100; ++client)
    CHECK(goes_to(lb, data(client)) != kB2);
}

TEST_CASE("no new flow waits for a backend that stays unchecked for too long, running ones stay") {
  LbUnderTest before{web({kB1, kB2, kB3})};
  LbUnderTest healthy{web({kB1, kB2, kB3})};
  LbUnderTest lb{web({kB1, kB2, kB3})};
  set_state(before, kB1, BackendState::down);
  set_state(lb, kB1, BackendState::unchecked);
  std::uint16_t known = 1000;  // one of kB1's, recorded while its check was awaited
  while (lb.handle(syn(known)) != dropped(DropReason::no_backend)) ++known;
  REQUIRE(goes_to(lb, data(known)) == kB1);
  lb.backend(kB1).awaits_check = false;
  lb.publish();
  CHECK(goes_to(lb, data(known)) == kB1);
  for (std::uint16_t client = 2000; client < 2100; ++client) {
    const Ip there = goes_to(lb, syn(client));
    CHECK(there != kB1);
    CHECK(there == goes_to(before, syn(client)));
    const auto unknown = static_cast<std::uint16_t>(client + 10000);
    CHECK(goes_to(lb, data(unknown)) == goes_to(healthy, data(unknown)));
  }
}

TEST_CASE("a SYN that has to leave its backend waits, too, while the slot's owner is not checked") {
  LbUnderTest lb{web({kB1, kB2, kB3})};
  const auto client = open_flows_on(lb, kB1, 1).front();  // kB1 is its slot's base owner
  lb.backend(kB3).state = BackendState::down;
  set_state(lb, kB1, BackendState::draining);
  lb.pass(60s);
  REQUIRE(goes_to(lb, syn(client)) == kB2);
  lb.backend(kB1).state = BackendState::unchecked;
  lb.backend(kB2).removed = true;
  set_state(lb, kB3, BackendState::eligible);
  CHECK(lb.handle(syn(client)) == dropped(DropReason::no_backend));
  set_state(lb, kB1, BackendState::eligible);
  CHECK(goes_to(lb, syn(client)) == kB1);
}

TEST_CASE("a flow that began elsewhere is marked: its age is not what the entry says") {
  LbUnderTest lb{web({kB1})};
  static_cast<void>(goes_to(lb, data(1000)));
  static_cast<void>(goes_to(lb, syn(1001)));
  CHECK(entry_of(lb, 1000).adopted());
  CHECK_FALSE(entry_of(lb, 1001).adopted());
  CHECK(goes_to(lb, fin(1000)) == kB1);
  lb.pass(10s);
  static_cast<void>(goes_to(lb, syn(1000)));  // begins again, here
  CHECK_FALSE(entry_of(lb, 1000).adopted());
  CHECK(entry_of(lb, 1000).age(lb.flows.now) == FlowTime{0});
}

TEST_CASE("a flow that finds no place is forwarded by Maglev and counted") {
  LbUnderTest lb{web({kB1, kB2}), {.flows = {.capacity = 100}}};
  // More flows that carry data than there are places.
  for (std::uint16_t client = 1000; client < 1200; ++client) open_flow(lb, client);
  std::uint16_t stranger = 3000;
  const auto unrecorded = [&] { return lb.flows.table_counters().not_recorded; };
  const auto opened = lb.counters_of_service(0).new_flows;
  for (auto before = unrecorded(); unrecorded() == before;)
    static_cast<void>(goes_to(lb, syn(++stranger)));
  CHECK(lb.counters_of_service(0).new_flows == opened + stranger - 3000u);

  const auto before = lb.flows.table_counters();
  const auto new_flows_before = lb.counters_of_service(0).new_flows;
  const Ip there = goes_to(lb, data(stranger));
  for (int i = 0; i < 4; ++i) CHECK(goes_to(lb, data(stranger)) == there);
  CHECK(lb.flows.table_counters().not_recorded == before.not_recorded + 5);
  CHECK(lb.flows.table_counters().mid_flow_misses == before.mid_flow_misses + 5);
  CHECK(lb.counters_of_service(0).new_flows == new_flows_before);  // counted at its SYN
}

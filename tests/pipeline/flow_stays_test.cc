// SPDX-License-Identifier: Apache-2.0
// A flow that was placed stays placed: through drains, weight 0, failed checks, removals and new
// backends; and when it may not stay, it is placed anew once.
#include <cmath>
#include <map>

#include "tests/pipeline/flows.h"

using namespace holdfast;
using namespace holdfast::dsl;

namespace {

constexpr std::uint16_t kNewClients = 30000;

/// Opens 200 flows; none may go to `backend`.
void no_new_flow_goes_to(LbUnderTest& lb, Ip backend) {
  const auto before = new_flows(lb, backend);
  for (std::uint16_t client = kNewClients; client < kNewClients + 200; ++client)
    REQUIRE(open_flow(lb, client) != backend);
  CHECK(new_flows(lb, backend) == before);
}

}  // namespace

TEST_CASE("a draining backend keeps its flows and gets no new ones") {
  LbUnderTest lb{web({kB1, kB2, kB3})};
  const auto clients = open_flows_on(lb, kB2, 20);
  set_state(lb, kB2, BackendState::draining);
  no_new_flow_goes_to(lb, kB2);
  for (int hour = 0; hour < 3; ++hour) {
    lb.pass(1h);
    for (const auto client : clients) CHECK(goes_to(lb, data(client)) == kB2);
  }
  CHECK(lb.counters_of_backend(kB2).active == 20);
}

TEST_CASE("a draining backend is empty when its clients have gone") {
  LbUnderTest lb{web({kB1, kB2})};
  const auto clients = open_flows_on(lb, kB2, 5);
  set_state(lb, kB2, BackendState::draining);
  for (const auto client : clients) CHECK(goes_to(lb, fin(client)) == kB2);
  CHECK(lb.counters_of_backend(kB2).active == 0);
  CHECK(lb.counters_of_backend(kB2).closing == 5);
  for (const auto client : clients) CHECK(goes_to(lb, ack(client)) == kB2);  // the last ACKs
  CHECK(lb.counters_of_backend(kB2).active == 0);
}

TEST_CASE("a drain that is taken back changes nothing for anybody") {
  LbUnderTest lb{web({kB1, kB2, kB3})};
  std::vector<Ip> before;
  for (std::uint16_t client = 1000; client < 1200; ++client)
    before.push_back(open_flow(lb, client));
  set_state(lb, kB2, BackendState::draining);
  set_state(lb, kB2, BackendState::eligible);
  for (std::uint16_t client = 1000; client < 1200; ++client)
    REQUIRE(goes_to(lb, data(client)) == before[client - 1000]);
  for (std::uint16_t client = 1000; client < 1200; ++client)  // new connections, same ports
    REQUIRE(goes_to(lb, syn(client)) == before[client - 1000]);
}

TEST_CASE("at its deadline a draining backend's flows are placed anew at their next packet") {
  LbUnderTest lb{web({kB1, kB2, kB3})};
  const auto clients = open_flows_on(lb, kB2, 10);
  set_state(lb, kB2, BackendState::draining);
  lb.backend(kB2).keeps_tcp = false;
  lb.publish();
  const auto others = new_flows(lb, kB1) + new_flows(lb, kB3);
  for (const auto client : clients) {
    const Ip anew = goes_to(lb, data(client));
    CHECK(anew != kB2);
    CHECK(goes_to(lb, data(client)) == anew);  // and stays there
  }
  CHECK(new_flows(lb, kB1) + new_flows(lb, kB3) == others + clients.size());
  CHECK(lb.flows.table_counters().repicked == clients.size());
  CHECK(lb.counters_of_backend(kB2).active == 0);
}

TEST_CASE("weight 0 keeps flows and gives no new ones") {
  LbUnderTest lb{web({kB1, kB2, kB3})};
  const auto clients = open_flows_on(lb, kB2, 10);
  lb.backend(kB2).weight = 0;
  set_state(lb, kB2, BackendState::weight_zero);
  no_new_flow_goes_to(lb, kB2);
  for (const auto client : clients) CHECK(goes_to(lb, data(client)) == kB2);
}

TEST_CASE("a backend that is down keeps its TCP flows for its grace only") {
  LbUnderTest lb{web({kB1, kB2, kB3})};
  const auto clients = open_flows_on(lb, kB2, 10);
  set_state(lb, kB2, BackendState::down);
  no_new_flow_goes_to(lb, kB2);
  for (const auto client : clients) CHECK(goes_to(lb, data(client)) == kB2);
  lb.backend(kB2).keeps_tcp = false;
  lb.publish();
  for (const auto client : clients) CHECK(goes_to(lb, data(client)) != kB2);
}

TEST_CASE("a backend that comes back within its grace finds its flows where they were") {
  LbUnderTest lb{web({kB1, kB2, kB3})};
  const auto clients = open_flows_on(lb, kB2, 10);
  set_state(lb, kB2, BackendState::down);
  for (const auto client : clients) CHECK(goes_to(lb, data(client)) == kB2);
  set_state(lb, kB2, BackendState::eligible);
  for (const auto client : clients) CHECK(goes_to(lb, data(client)) == kB2);
}

TEST_CASE("a removed backend's flows are placed anew at their next packet and stay there") {
  LbUnderTest lb{web({kB1, kB2, kB3})};
  const auto clients = open_flows_on(lb, kB2, 10);
  lb.backend(kB2).removed = true;
  lb.publish();
  for (const auto client : clients) {
    const Ip anew = goes_to(lb, data(client));
    CHECK(anew != kB2);
    CHECK(goes_to(lb, ack(client)) == anew);
  }
}

TEST_CASE("nobody moves when a backend is added, drained, put down and brought back") {
  LbUnderTest lb{web({kB1, kB2, kB3})};
  lb.backend(kB3).removed = true;
  lb.publish();
  std::vector<Ip> before;
  for (std::uint16_t client = 1000; client < 1300; ++client)
    before.push_back(open_flow(lb, client));
  const auto nobody_moved = [&] {
    for (std::uint16_t client = 1000; client < 1300; ++client)
      REQUIRE(goes_to(lb, data(client)) == before[client - 1000]);
  };
  lb.backend(kB3).removed = false;
  lb.publish();
  nobody_moved();
  set_state(lb, kB1, BackendState::draining);
  nobody_moved();
  set_state(lb, kB2, BackendState::down);
  nobody_moved();
  set_state(lb, kB1, BackendState::eligible);
  set_state(lb, kB2, BackendState::eligible);
  nobody_moved();
}

TEST_CASE("with only draining backends left, new flows go to them") {
  LbUnderTest lb{web({kB1, kB2})};
  const auto clients = open_flows_on(lb, kB1, 5);
  set_state(lb, kB2, BackendState::down);
  set_state(lb, kB1, BackendState::draining);
  CHECK(goes_to(lb, syn(kNewClients)) == kB1);
  for (const auto client : clients) CHECK(goes_to(lb, data(client)) == kB1);
}

TEST_CASE("past its deadline a draining backend keeps its flows if it is all there is") {
  LbUnderTest lb{web({kB1})};
  open_flow(lb, 1000);
  static_cast<void>(goes_to(lb, syn(1001)));
  lb.backend(kB1).keeps_tcp = false;
  set_state(lb, kB1, BackendState::draining);
  const auto before = new_flows(lb, kB1);
  for (int i = 0; i < 3; ++i) CHECK(goes_to(lb, data(1000)) == kB1);
  CHECK(goes_to(lb, ack(1001)) == kB1);
  CHECK(lb.counters_of_backend(kB1).active == 2);
  CHECK(goes_to(lb, fin(1000)) == kB1);
  CHECK(lb.counters_of_backend(kB1).closing == 1);
  CHECK(new_flows(lb, kB1) == before);
}

TEST_CASE("without any backend a new flow is dropped, and a placed one stays") {
  LbUnderTest lb{web({kB1})};
  open_flow(lb, 1000);
  set_state(lb, kB1, BackendState::down);
  CHECK(lb.handle(syn(kNewClients)) == dropped(DropReason::no_backend));
  CHECK(goes_to(lb, data(1000)) == kB1);
  lb.backend(kB1).keeps_tcp = false;
  lb.publish();
  CHECK(lb.handle(data(1000)) == dropped(DropReason::no_backend));
  set_state(lb, kB1, BackendState::eligible);  // the entry has waited
  CHECK(goes_to(lb, data(1000)) == kB1);
  CHECK(lb.flows.table_counters().repicked == 0);
}

TEST_CASE("a flow stays for as long as its timeout says, and is new after that") {
  LbUnderTest lb{web({kB1, kB2})};
  const auto clients = open_flows_on(lb, kB2, 2);
  set_state(lb, kB2, BackendState::draining);
  lb.pass(2h + 4min + 59s);
  CHECK(goes_to(lb, data(clients[0])) == kB2);
  lb.pass(1s);
  CHECK(goes_to(lb, data(clients[0])) == kB2);
  CHECK(goes_to(lb, data(clients[1])) == kB1);  // silent for 2 h 5 min: unknown now
  CHECK(lb.flows.table_counters().mid_flow_misses == 1);
}

TEST_CASE("an embryonic flow is forgotten 20 s after its last SYN") {
  LbUnderTest lb{web({kB1, kB2})};
  std::uint16_t client = 1000;
  while (goes_to(lb, syn(client)) != kB2) ++client;
  set_state(lb, kB2, BackendState::draining);
  lb.pass(19s);
  CHECK(goes_to(lb, syn(client)) == kB2);  // a retransmit
  lb.pass(19s);
  CHECK(goes_to(lb, syn(client)) == kB2);
  lb.pass(20s);
  CHECK(goes_to(lb, syn(client)) == kB1);
}

TEST_CASE("the sweep forgets what is silent without any packet of it") {
  LbUnderTest lb{web({kB1})};
  for (std::uint16_t client = 1000; client < 1100; ++client) open_flow(lb, client);
  CHECK(lb.counters_of_backend(kB1).active == 100);
  lb.pass(2h + 5min);
  for (int i = 0; i < 400; ++i) {  // another client's packets; the worker tends its table
    lb.pass(250ms);
    REQUIRE(goes_to(lb, data(9)) == kB1);
  }
  CHECK(lb.counters_of_backend(kB1).active == 1);
  CHECK(lb.flows.table_counters().expired == 100);
}

TEST_CASE("a port that moves to another service and pool takes its flows along where they are") {
  // Any port; then port 80 gets a service of its own, with a backend of its own.
  const ServiceSpec all = service("203.0.113.10", tcp_any()).to(kB1);
  const ServiceSpec none = service("203.0.113.99", tcp(80)).to(kB2);
  LbUnderTest lb{all, none};
  open_flow(lb, 1000);
  CHECK(lb.counters_of_service(0).active == 1);
  lb.service(1).vips = {"203.0.113.10"};
  lb.publish();
  CHECK(goes_to(lb, data(1000)) == kB1);
  CHECK(lb.counters_of_service(0).active == 0);
  CHECK(lb.counters_of_service(1).active == 1);
  CHECK(open_flow(lb, 1001) == kB2);
}

TEST_CASE("flows stay where they are while weights change, and new ones follow the new shares") {
  LbUnderTest lb(web({kB1, kB2, kB3}));
  std::map<std::uint16_t, Ip> placed;
  for (std::uint16_t client = 1000; client < 1600; ++client)
    placed.emplace(client, open_flow(lb, client));
  std::uint16_t next = 2000;
  for (const std::uint32_t weight : {10u, 1000u, 0u, 100u}) {
    lb.backend(kB2).weight = weight;
    lb.backend(kB2).state = weight == 0 ? BackendState::weight_zero : BackendState::eligible;
    lb.publish();
    for (const auto& [client, backend] : placed) REQUIRE(goes_to(lb, data(client)) == backend);
    const auto before = new_flows(lb, kB2);
    for (int i = 0; i < 600; ++i) static_cast<void>(goes_to(lb, syn(next++)));
    const double share = static_cast<double>(new_flows(lb, kB2) - before) / 600;
    CAPTURE(weight, share);
    CHECK(std::abs(share - weight / (200.0 + weight)) < 0.08);
  }
}

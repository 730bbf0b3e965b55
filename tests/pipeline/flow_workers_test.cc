// SPDX-License-Identifier: Apache-2.0
// Two workers between whom a NIC spreads packets as it likes: two pipelines whose flow contexts
// know each other.
#include <array>

#include "tests/pipeline/flows.h"

using namespace holdfast;
using namespace holdfast::dsl;

namespace {

struct TwoWorkers {
  LbUnderTest one;
  LbUnderTest two;

  explicit TwoWorkers(const ServiceSpec& spec = web({kB1, kB2}),
                      FlowOptions options = {.capacity = 10'000})
      : one(spec, {.flows = options}), two(spec, {.flows = options}) {
    const std::array both{&one.flows, &two.flows};
    FlowContext::connect(both);
  }

  void set_state(Ip backend, BackendState state) {
    for (LbUnderTest* lb : {&one, &two}) dsl::set_state(*lb, backend, state);
  }
  /// Both workers poll once more, so that they read their messages.
  void settle() {
    for (LbUnderTest* lb : {&one, &two}) lb->flows.tend(lb->snapshot(), lb->time, 0);
  }
  [[nodiscard]] std::int64_t active_on(Ip backend) const {
    return one.counters_of_backend(backend).active + two.counters_of_backend(backend).active;
  }
};

}  // namespace

TEST_CASE("a flow whose packets come to another worker goes on to the same backend") {
  TwoWorkers workers;
  const auto client = open_flows_on(workers.one, kB2, 1).front();
  workers.set_state(kB2, BackendState::draining);  // Maglev would say kB1
  const auto before = workers.one.counters_of_backend(kB2).new_flows;
  const auto active = workers.active_on(kB2);

  CHECK(goes_to(workers.two, data(client)) == kB2);
  CHECK(workers.two.flows.table_counters().sibling_hits == 1);
  CHECK(workers.two.flows.table_counters().established == 1);
  workers.settle();
  CHECK(workers.one.flows.table_counters().handed_over == 1);
  CHECK(workers.active_on(kB2) == active);
  CHECK(workers.one.counters_of_backend(kB2).new_flows +
            workers.two.counters_of_backend(kB2).new_flows ==
        before);

  CHECK(goes_to(workers.two, data(client)) == kB2);  // by its own entry now
  CHECK(workers.two.flows.table_counters().sibling_hits == 1);
}

TEST_CASE("packets that alternate between two workers never leave their backend") {
  TwoWorkers workers;
  const auto client = open_flows_on(workers.one, kB2, 1).front();
  workers.set_state(kB2, BackendState::draining);
  const auto active = workers.active_on(kB2);
  for (int i = 0; i < 200; ++i) {
    LbUnderTest& lb = i % 3 == 0 ? workers.one : workers.two;
    REQUIRE(goes_to(lb, i % 2 == 0 ? data(client) : ack(client)) == kB2);
  }
  workers.settle();
  CHECK(workers.active_on(kB2) == active);
}

TEST_CASE("a proven flow stays proven in the table that copies it") {
  TwoWorkers workers;
  const auto client = open_flows_on(workers.one, kB2, 1).front();
  for (int i = 0; i < 3; ++i) {
    workers.one.pass(10s);
    workers.two.pass(10s);
    static_cast<void>(goes_to(workers.one, data(client)));
  }
  static_cast<void>(goes_to(workers.two, data(client)));
  const FlowEntry copy = entry_of(workers.two, client);
  CHECK(copy.life() == FlowLife{FlowState::established, FlowLife::kProven});
  CHECK(copy.adopted());
}

TEST_CASE("a SYN does not ask other workers") {
  TwoWorkers workers;
  const auto client = open_flows_on(workers.one, kB2, 1).front();
  workers.set_state(kB2, BackendState::draining);
  CHECK(goes_to(workers.two, syn(client)) == kB1);
  CHECK(workers.two.flows.table_counters().sibling_hits == 0);
}

TEST_CASE("a FIN that comes to another worker ends the flow in both tables") {
  TwoWorkers workers;
  const auto client = open_flows_on(workers.one, kB2, 1).front();
  const auto active = workers.active_on(kB2);
  CHECK(goes_to(workers.two, fin(client)) == kB2);
  workers.settle();
  CHECK(workers.active_on(kB2) == active - 1);
  CHECK(workers.two.counters_of_backend(kB2).closing == 1);
}

TEST_CASE("two workers that copied one flow from a third both forget it when it ends") {
  LbUnderTest lbs[] = {LbUnderTest{web({kB1, kB2})}, LbUnderTest{web({kB1, kB2})},
                       LbUnderTest{web({kB1, kB2})}};
  const std::array all{&lbs[0].flows, &lbs[1].flows, &lbs[2].flows};
  FlowContext::connect(all);
  const auto client = open_flows_on(lbs[0], kB2, 1).front();
  const auto others = lbs[0].counters_of_backend(kB2).active - 1;
  // Neither has read a message when the other looks.
  CHECK(goes_to(lbs[1], data(client)) == kB2);
  CHECK(goes_to(lbs[2], data(client)) == kB2);
  CHECK(goes_to(lbs[2], fin(client)) == kB2);
  std::int64_t active = 0;
  for (LbUnderTest& lb : lbs) {
    lb.flows.tend(lb.snapshot(), lb.time, 0);
    active += lb.counters_of_backend(kB2).active;
  }
  CHECK(active == others);
}

TEST_CASE("beyond the budget for other workers' tables Maglev answers, and it is counted") {
  TwoWorkers workers(web({kB1, kB2}), {.capacity = 10'000, .sibling_lookup_rate = 10});
  for (std::uint16_t client = 1000; client < 1030; ++client)
    static_cast<void>(goes_to(workers.two, data(client)));
  CHECK(workers.two.flows.table_counters().sibling_refused == 20);
  workers.two.pass(1s);
  static_cast<void>(goes_to(workers.two, data(2000)));
  CHECK(workers.two.flows.table_counters().sibling_refused == 20);
}

TEST_CASE("packets of one flow in one burst need one look at other workers' tables") {
  TwoWorkers workers(web({kB1, kB2}), {.capacity = 10'000, .sibling_lookup_rate = 1});
  const auto client = open_flows_on(workers.one, kB2, 1).front();
  workers.set_state(kB2, BackendState::draining);  // Maglev would say kB1
  for (const auto& handled : workers.two.handle_all({data(client), ack(client), data(client)}))
    CHECK(destination(handled) == kB2);
  CHECK(workers.two.flows.table_counters().sibling_hits == 1);
  CHECK(workers.two.flows.table_counters().sibling_refused == 0);
}

TEST_CASE("a SYN does not overtake a packet of its flow that other workers are asked about") {
  TwoWorkers workers;
  const auto client = open_flows_on(workers.one, kB2, 1).front();
  workers.set_state(kB2, BackendState::draining);
  for (const auto& handled : workers.two.handle_all({data(client), syn(client), data(client)}))
    CHECK(destination(handled) == kB2);
}

TEST_CASE("packets of one flow that leave no entry pay for each look at other workers' tables") {
  TwoWorkers workers(web({kB1, kB2}), {.capacity = 10'000, .sibling_lookup_rate = 10});
  static_cast<void>(workers.two.handle_all(std::vector(30, rst(1000))));
  CHECK(workers.two.flows.table_counters().sibling_refused == 20);
}

TEST_CASE("a flow in another worker's table whose backend is gone is placed by Maglev") {
  TwoWorkers workers;
  const auto client = open_flows_on(workers.one, kB2, 1).front();
  workers.two.backend(kB2).removed = true;
  workers.two.publish();
  CHECK(goes_to(workers.two, data(client)) == kB1);
  CHECK(workers.two.flows.table_counters().sibling_hits == 0);
  // Nor may the other worker go on with it, should the backend come back.
  const auto active = workers.one.counters_of_backend(kB2).active;
  workers.settle();
  CHECK(workers.one.counters_of_backend(kB2).active == active - 1);
}

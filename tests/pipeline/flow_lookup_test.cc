// SPDX-License-Identifier: Apache-2.0
// What `holdfast lookup` says against what packets then do.
#include <algorithm>
#include <array>
#include <memory>
#include <random>

#include "lb/flow/lookup.h"
#include "tests/pipeline/flows.h"

using namespace holdfast;
using namespace holdfast::dsl;

namespace {

FlowQuestion question(std::uint16_t client, IpProtocol protocol = IpProtocol::tcp) {
  const bool tcp = protocol == IpProtocol::tcp;
  return {.protocol = protocol,
          .client = Ip4{}.src,
          .client_port = client,
          .vip = Ip4{}.dst,
          .vip_port = static_cast<std::uint16_t>(tcp ? 80 : 443)};
}

/// One or several workers with their tables connected, as the data plane has them.
struct Workers {
  std::vector<std::unique_ptr<LbUnderTest>> lbs;

  Workers(std::size_t count, const std::vector<ServiceSpec>& services) {
    std::vector<FlowContext*> all;
    for (std::size_t i = 0; i < count; ++i) {
      lbs.push_back(std::make_unique<LbUnderTest>(services, LbUnderTest::Options{}));
      all.push_back(&lbs.back()->flows);
    }
    FlowContext::connect(all);
  }

  [[nodiscard]] FlowAnswer look_up(const FlowQuestion& about) const {
    std::vector<const FlowTable*> tables;
    for (const auto& lb : lbs) tables.push_back(&lb->flows.table);
    return look_up_flow(about, lbs[0]->snapshot(), tables);
  }
  template <class Change>
  void change(Ip address, Change&& how) {
    for (const auto& lb : lbs) {
      how(lb->backend(address));
      lb->publish();
    }
  }
};

/// Requires that the packet went where it was told to go. (By address: each service has numbers of
/// its own for the backends.)
void require_as_told(const FlowChoice& told, const LbUnderTest& lb, const Handled& handled) {
  if (handled.kind == Handled::Kind::dropped) {
    REQUIRE(told.dropped == handled.reason);
    return;
  }
  REQUIRE_FALSE(told.dropped);
  REQUIRE(lb.snapshot().backend(told.backend)->address == destination(handled));
}

}  // namespace

TEST_CASE("for a new flow lookup names the slot's owner and changes nothing") {
  Workers workers(1, {web({kB1, kB2, kB3})});
  LbUnderTest& lb = *workers.lbs[0];
  for (std::uint16_t client = 1000; client < 1200; ++client) {
    const FlowAnswer answer = workers.look_up(question(client));
    CHECK(answer.is_vip);
    CHECK(answer.slots == 1021);
    CHECK(answer.slot < answer.slots);
    CHECK(answer.tables.empty());
    REQUIRE(answer.workers.size() == 1);
    CHECK(answer.workers[0].next.rule == FlowRule::slot);
    CHECK(answer.workers[0].syn.backend == answer.base_owner);
    CHECK(answer.base_owner == answer.effective_owner);
    CHECK(goes_to(lb, syn(client)) ==
          lb.snapshot().backend(answer.workers[0].syn.backend)->address);
  }
  CHECK(lb.flows.table_counters().inserted == 200);
  CHECK(lb.flows.table_counters().hits == 0);
}

TEST_CASE("a placed flow is told by its worker's table, with its state") {
  Workers workers(2, {web({kB1, kB2})});
  LbUnderTest& two = *workers.lbs[1];
  const auto client = open_flows_on(two, kB2, 1).front();
  workers.change(kB2, [](BackendSpec& spec) { spec.state = BackendState::draining; });

  FlowAnswer answer = workers.look_up(question(client));
  REQUIRE(answer.tables.size() == 1);
  CHECK(answer.tables[0].worker == 1);
  CHECK(answer.tables[0].backend == two.number_of(kB2));
  CHECK(answer.tables[0].state == FlowSighting::State::established);
  CHECK_FALSE(answer.tables[0].proven);
  CHECK(answer.tables[0].stays);
  CHECK(answer.workers[0].next ==
        FlowChoice{.rule = FlowRule::other_table, .backend = two.number_of(kB2)});
  CHECK(answer.workers[1].next ==
        FlowChoice{.rule = FlowRule::own_table, .backend = two.number_of(kB2)});
  CHECK(answer.effective_owner == two.number_of(kB1));
  // A SYN is a matter of who gets it, and of how long the flow was silent.
  CHECK(answer.workers[0].syn.backend == two.number_of(kB1));
  CHECK(answer.workers[1].syn.backend == two.number_of(kB2));
  CHECK(answer.workers[1].syn_after_silence ==
        FlowChoice{.rule = FlowRule::slot, .backend = two.number_of(kB1)});

  workers.change(kB2, [](BackendSpec& spec) {
    spec.state = BackendState::down;
    spec.keeps_tcp = false;
  });
  answer = workers.look_up(question(client));
  CHECK_FALSE(answer.tables[0].stays);
  CHECK(answer.workers[1].next ==
        FlowChoice{.rule = FlowRule::slot, .backend = two.number_of(kB1)});

  static_cast<void>(two.handle(fin(client)));
  CHECK(workers.look_up(question(client)).tables.empty());
}

TEST_CASE("a flow whose slot's base owner went down a moment ago") {
  Workers workers(1, {web({kB1, kB2})});
  LbUnderTest& lb = *workers.lbs[0];
  workers.change(kB1, [](BackendSpec& spec) { spec.state = BackendState::down; });
  std::uint16_t client = 1000;
  while (workers.look_up(question(client)).base_owner != lb.number_of(kB1)) ++client;
  const FlowAnswer answer = workers.look_up(question(client));
  CHECK(answer.workers[0].next ==
        FlowChoice{.rule = FlowRule::base_in_grace, .backend = lb.number_of(kB1)});
  CHECK(answer.workers[0].syn == FlowChoice{.rule = FlowRule::slot, .backend = lb.number_of(kB2)});
  CHECK(goes_to(lb, data(client)) == kB1);
}

TEST_CASE("a flow whose slot waits for its base owner's first check") {
  Workers workers(1, {web({kB1, kB2})});
  LbUnderTest& lb = *workers.lbs[0];
  workers.change(kB1, [](BackendSpec& spec) { spec.state = BackendState::unchecked; });
  std::uint16_t client = 1000;
  while (workers.look_up(question(client)).base_owner != lb.number_of(kB1)) ++client;
  const FlowAnswer answer = workers.look_up(question(client));
  CHECK(answer.workers[0].next ==
        FlowChoice{.rule = FlowRule::unchecked_base, .backend = lb.number_of(kB1)});
  CHECK(answer.workers[0].syn ==
        FlowChoice{.rule = FlowRule::unchecked_base, .dropped = DropReason::no_backend});
  CHECK(lb.handle(syn(client)) == dropped(DropReason::no_backend));
  CHECK(goes_to(lb, data(client)) == kB1);
}

TEST_CASE("lookup says what happens to packets that reach no backend") {
  Workers workers(1, {web({kB1})});
  FlowQuestion elsewhere = question(1000);
  elsewhere.vip = Ip("203.0.113.99");
  CHECK_FALSE(workers.look_up(elsewhere).is_vip);
  FlowQuestion other_port = question(1000);
  other_port.vip_port = 81;
  CHECK(workers.look_up(other_port).dropped == DropReason::unknown_port);
  CHECK(workers.look_up(question(1000, IpProtocol::udp)).dropped == DropReason::unknown_port);
  Workers rejecting(1, {web({kB1}).rejecting()});
  CHECK(rejecting.look_up(other_port).rejected);
  CHECK_FALSE(workers.look_up(other_port).rejected);
  FlowQuestion martian = question(1000);
  martian.client = Ip("127.0.0.1");
  CHECK(workers.look_up(martian).dropped == DropReason::ipv4_source_loopback);

  workers.change(kB1, [](BackendSpec& spec) { spec.hops.clear(); });
  CHECK(workers.look_up(question(1000)).workers[0].syn.dropped == DropReason::neigh_unresolved);
  CHECK(workers.lbs[0]->handle(syn(1000)) == dropped(DropReason::neigh_unresolved));
  workers.change(kB1, [](BackendSpec& spec) { spec.state = BackendState::down; });
  CHECK(workers.look_up(question(1001)).workers[0].syn.dropped == DropReason::no_backend);
  CHECK(workers.lbs[0]->handle(syn(1001)) == dropped(DropReason::no_backend));
}

TEST_CASE("an IPv6 flow is looked up like its packets") {
  Workers workers(1, {service("2001:db8::10", tcp(443)).to(kB1).to(kB2).to(kB3)});
  LbUnderTest& lb = *workers.lbs[0];
  for (std::uint16_t client = 2000; client < 2100; ++client) {
    const FlowAnswer answer = workers.look_up({.protocol = IpProtocol::tcp,
                                               .client = Ip6{}.src,
                                               .client_port = client,
                                               .vip = Ip6{}.dst,
                                               .vip_port = 443});
    const auto packet = Eth{} / Ip6{} / Tcp{.sport = client, .dport = 443, .flags = Syn};
    CHECK(goes_to(lb, packet) == lb.snapshot().backend(answer.workers[0].syn.backend)->address);
  }
}

TEST_CASE("whatever happens to flows and backends, lookup says what each packet then does") {
  const unsigned seed = GENERATE(1u, 2u, 3u);
  std::mt19937 random(seed);
  const auto below = [&](std::size_t limit) { return random() % limit; };
  Workers workers(2, {web({kB1, kB2, kB3}), udp_web({kB1, kB2, kB3})});
  constexpr std::array kStates{BackendState::eligible,  BackendState::eligible,
                               BackendState::draining,  BackendState::down,
                               BackendState::unchecked, BackendState::weight_zero};
  std::size_t by_table = 0;
  std::size_t by_other_table = 0;
  std::size_t by_unchecked = 0;
  std::size_t nowhere = 0;
  for (int round = 0; round < 4000; ++round) {
    if (round % 40 == 0) {
      // Both services have these backends; each spec is found by its address, the first one's.
      const Ip address = std::array{kB1, kB2, kB3}[below(3)];
      const auto state = kStates[below(kStates.size())];
      const bool keeps = state != BackendState::down || below(2) == 0;
      const bool awaits_check = below(4) != 0;
      for (const auto& lb : workers.lbs)
        for (std::size_t service = 0; service < 2; ++service)
          for (BackendSpec& spec : lb->service(service).backends)
            if (static_cast<IpAddress>(spec.address) == address) {
              spec.state = state;
              spec.keeps_tcp = spec.keeps_udp = keeps;
              spec.awaits_check = awaits_check;
            }
      for (const auto& lb : workers.lbs) lb->publish();
    }
    const auto client = static_cast<std::uint16_t>(1000 + below(300));
    const bool tcp = below(4) != 0;
    const std::size_t worker = below(5) == 0 ? 1 : 0;
    LbUnderTest& lb = *workers.lbs[worker];
    const auto answer = workers.look_up(question(client, tcp ? IpProtocol::tcp : IpProtocol::udp));
    const WorkerChoice& told = answer.workers.at(worker);
    const auto check = [&](const FlowChoice& choice, const Packet& packet) {
      require_as_told(choice, lb, lb.handle(packet));
    };
    // No entry is silent for 60 s here, so a SYN's answer is the first of the two.
    if (!tcp)
      check(told.next, datagram(client));
    else if (below(3) == 0)
      check(told.syn, syn(client));
    else
      check(told.next, below(2) == 0 ? data(client) : ack(client));
    by_table += told.next.rule == FlowRule::own_table;
    by_other_table += told.next.rule == FlowRule::other_table;
    by_unchecked += told.next.rule == FlowRule::unchecked_base;
    nowhere += told.next.dropped.has_value();
    for (const auto& each : workers.lbs) each->flows.tend(each->snapshot(), each->time, 0);
  }
  CHECK(by_table > 1000);
  CHECK(by_other_table > 20);
  CHECK(by_unchecked > 20);
  CHECK(nowhere > 5);
}

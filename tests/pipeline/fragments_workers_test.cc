// SPDX-License-Identifier: Apache-2.0
// Two workers between whom a NIC spreads the fragments of a datagram as it likes.
#include <algorithm>
#include <array>

#include "tests/pipeline/fragments.h"

using namespace holdfast;
using namespace holdfast::dsl;

namespace {

struct TwoWorkers {
  LbUnderTest one;
  LbUnderTest two;

  explicit TwoWorkers(FlowOptions options = {.capacity = 10'000})
      : one(both_services(), {.flows = options}), two(both_services(), {.flows = options}) {
    const std::array both{&one.flows, &two.flows};
    FlowContext::connect(both);
  }
  void pass(Instant duration) {
    one.pass(duration);
    two.pass(duration);
  }
  [[nodiscard]] std::uint64_t dropped_for(DropReason reason) const {
    return one.dropped_for(reason) + two.dropped_for(reason);
  }
};

Client any_family() { return {.family = GENERATE(Family::ipv4, Family::ipv6)}; }

}  // namespace

TEST_CASE("a later fragment finds what its first one taught another worker") {
  TwoWorkers workers;
  const Client client = any_family();
  const auto pieces = client.pieces();
  const Ip backend = goes_to(workers.one, pieces[0]);
  CHECK(workers.two.handle(pieces[1]) == sent(tunnelled(pieces[1], backend)));
  CHECK(workers.two.handle(pieces[2]) == sent(tunnelled(pieces[2], backend)));
}

TEST_CASE(
    "a held fragment goes on about a millisecond after its first one came to another worker") {
  TwoWorkers workers;
  const Client client = any_family();
  const auto pieces = client.pieces();
  CHECK(workers.two.handle(pieces[2]) == held());
  workers.pass(400ms);
  workers.two.idle();
  CHECK(workers.two.take_released().empty());
  const Ip backend = goes_to(workers.one, pieces[0]);
  workers.pass(1ms);
  workers.two.idle();
  CHECK(workers.two.take_released() == std::vector{sent(tunnelled(pieces[2], backend))});
  CHECK(workers.two.counters().held_now == 0);
  CHECK(workers.two.handle(pieces[1]) == sent(tunnelled(pieces[1], backend)));
}

TEST_CASE("fragments of many datagrams that go round between two workers all arrive") {
  TwoWorkers workers;
  // Each as long as can be, every second one back to front.
  for (std::uint16_t i = 0; i < 40; ++i) {
    const Client client{i % 4 < 2 ? Family::ipv4 : Family::ipv6,
                        static_cast<std::uint16_t>(1000 + i)};
    const Ip backend = goes_to(workers.one, client.whole(100));
    auto pieces = client.pieces(12'000, i);
    REQUIRE(pieces.size() == 16);
    if (i % 2 == 0) std::ranges::reverse(pieces);
    std::vector<Handled> gone;
    for (std::size_t k = 0; k < pieces.size(); ++k) {
      LbUnderTest& lb = (k + i) % 2 == 0 ? workers.one : workers.two;
      const Handled handled = lb.handle(pieces[k]);
      if (handled.kind != Handled::Kind::held) gone.push_back(handled);
    }
    workers.pass(1ms);
    for (LbUnderTest* lb : {&workers.one, &workers.two}) {
      lb->idle();
      std::ranges::move(lb->take_released(), std::back_inserter(gone));
      CHECK(lb->counters().held_now == 0);
    }
    REQUIRE(gone.size() == 16);
    check_all_went_to(backend, gone);
  }
}

TEST_CASE("fragments at one worker follow the flow in another worker's table") {
  TwoWorkers workers;
  Client client = any_family();
  while (goes_to(workers.one, client.whole(100)) != kB2) ++client.port;
  static_cast<void>(workers.one.handle(client.whole(100)));
  for (LbUnderTest* lb : {&workers.one, &workers.two}) {
    lb->service(1).backends[1].state = BackendState::draining;
    lb->publish();
  }
  check_all_went_to(kB2, workers.two.handle_all(client.pieces()));
}

TEST_CASE("fragments that overlap at different workers are noticed") {
  TwoWorkers workers;
  const Client client = any_family();
  const auto overlap = dropped(reasons_of(client).overlap);
  const auto pieces = client.pieces(3000);
  CHECK(workers.one.handle(pieces[0]).kind == Handled::Kind::sent);
  CHECK(workers.two.handle(pieces[1]).kind == Handled::Kind::sent);
  auto layers = pieces[2].layers();
  layers.back() = payload(808);  // eight bytes of the next one
  CHECK(workers.two.handle(pieces[3]).kind == Handled::Kind::sent);
  CHECK(workers.one.handle(Packet(layers)) == overlap);
  // Spoilt for both.
  CHECK(workers.one.handle(pieces[2]) == overlap);
  CHECK(workers.two.handle(pieces[2]) == overlap);
}

TEST_CASE("an overlap drops what is held at another worker") {
  TwoWorkers workers;
  const Client client = any_family();
  const auto overlap = dropped(reasons_of(client).overlap);
  const auto pieces = client.pieces();
  CHECK(workers.two.handle(pieces[1]) == held());
  auto layers = pieces[0].layers();
  std::get<Raw>(layers.back()).bytes.resize(808);
  CHECK(workers.one.handle(Packet(layers)) == overlap);
  workers.pass(1ms);
  workers.two.idle();
  CHECK(workers.two.take_released() == std::vector{overlap});
}

TEST_CASE("what one worker has refused another drops, too") {
  TwoWorkers workers;
  const auto pieces = fragments_of(Eth{} / Ip4{.df = false} / Tcp{} / payload(100), 16);
  CHECK(workers.one.handle(pieces[0]) == dropped(DropReason::ipv4_fragment_tiny));
  CHECK(workers.two.handle(pieces[2]) == dropped(DropReason::ipv4_fragment_tiny));
}

TEST_CASE("a first fragment that no worker sees is waited for in vain at all of them") {
  TwoWorkers workers;
  const Client client = any_family();
  const auto pieces = client.pieces();
  CHECK(workers.one.handle(pieces[1]) == held());
  CHECK(workers.two.handle(pieces[2]) == held());
  for (int ms = 0; ms < 1000; ms += 10) {
    workers.pass(10ms);
    workers.one.idle();
    workers.two.idle();
  }
  CHECK(workers.dropped_for(reasons_of(client).no_first) == 2);
  CHECK(workers.one.counters().held_now + workers.two.counters().held_now == 0);
}

TEST_CASE("beyond the budget for other workers' tables fragments wait, and go on when it allows") {
  TwoWorkers workers({.capacity = 10'000, .sibling_lookup_rate = 20});
  std::vector<Packet> later;
  for (std::uint16_t i = 0; i < 60; ++i) {
    const auto pieces = Client{Family::ipv4, static_cast<std::uint16_t>(1000 + i)}.pieces(1000, i);
    static_cast<void>(goes_to(workers.one, pieces[0]));
    later.push_back(pieces[1]);
  }
  const auto all = workers.two.handle_all(later);
  CHECK(std::ranges::count(all, Handled::Kind::sent, &Handled::kind) == 20);
  CHECK(workers.two.counters().held_now == 40);
  for (int ms = 0; ms < 950; ms += 10) {
    workers.pass(10ms);
    workers.two.idle();
  }
  const auto released = workers.two.take_released();
  CHECK(released.size() >= 18);
  for (const Handled& handled : released) CHECK(handled.kind == Handled::Kind::sent);
}

TEST_CASE("lone fragments that wait take no looks from those whose first one another worker has") {
  TwoWorkers workers({.capacity = 10'000, .sibling_lookup_rate = 1000, .most_held = 600});
  const Client stranger{Family::ipv4, 999};
  std::vector<Packet> lone;
  lone.reserve(700);
  for (std::uint16_t i = 1000; i < 1700; ++i) lone.push_back(stranger.pieces(1000, i)[1]);
  for (const Packet& packet : lone) static_cast<void>(workers.two.handle(packet));
  REQUIRE(workers.two.counters().held_now == 600);
  // More often than the budget lasts the worker asks about all that waits.
  for (int i = 0; i < 400; ++i) {
    workers.pass(1ms);
    workers.two.idle();
  }
  const Client client{Family::ipv4, 1000};
  const auto pieces = client.pieces();
  const Ip backend = goes_to(workers.one, pieces[0]);
  CHECK(workers.two.handle(pieces[1]) == sent(tunnelled(pieces[1], backend)));
}

// SPDX-License-Identifier: Apache-2.0
#include "ctrl/state/backend_state.h"

#include "tests/catch.h"

using namespace holdfast;
using namespace std::chrono_literals;

namespace {

constexpr Instant kStart = 1000s;   // the daemon first had the backend
constexpr Instant kEvent = 5000s;   // it went down, or was drained
constexpr Instant kLater = 20000s;  // hours after both

HealthState not_checked() { return HealthState{{.rise = 3, .fall = 1}, kStart}; }

HealthState come_up() {
  auto health = not_checked();
  health.on_success(kStart);
  return health;
}

HealthState gone_down() {
  auto health = come_up();
  health.on_failure(kEvent, "connection refused");
  return health;
}

Drain not_drained() { return {}; }

Drain drained(std::optional<std::chrono::milliseconds> timeout = std::nullopt) {
  Drain drain;
  drain.start(kEvent, timeout);
  return drain;
}

/// Everything good, unless a test says otherwise.
struct Case {
  HealthState health = come_up();
  Drain drain = not_drained();
  PathState path = PathState::usable;
  std::uint32_t weight = 100;
  Instant now = kLater;
  std::string_view problem{};

  [[nodiscard]] BackendVerdict verdict() const {
    return judge_backend({.weight = weight,
                          .down_grace = 10s,
                          .appeared = kStart,
                          .health = health,
                          .drain = drain,
                          .path = path,
                          .path_problem = problem},
                         now);
  }
};

}  // namespace

TEST_CASE("every row of the table of backend states") {
  struct Row {
    std::string_view sentence;
    Case given;
    BackendState state;
    bool keeps_tcp;
    bool keeps_udp;
    Deadline next;
  };
  using enum BackendState;
  constexpr Deadline kNever;
  // A table, which the formatter would stretch.
  // clang-format off
  const Row rows[] = {
      {"all is well",
       {}, eligible, true, true, kNever},
      {"weight 0: placed flows stay, no deadline",
       {.weight = 0}, weight_zero, true, true, kNever},
      {"draining, no deadline: TCP and UDP stay",
       {.drain = drained(), .now = kEvent}, draining, true, true, kEvent + 15min},
      {"draining, no deadline: just before 15 minutes UDP stays",
       {.drain = drained(), .now = kEvent + 15min - 1ms}, draining, true, true, kEvent + 15min},
      {"draining, no deadline: at 15 minutes UDP is re-picked, TCP stays",
       {.drain = drained(), .now = kEvent + 15min}, draining, true, false, kNever},
      {"draining, no deadline: TCP stays for hours",
       {.drain = drained()}, draining, true, false, kNever},
      {"draining, deadline: both stay before it",
       {.drain = drained(1h), .now = kEvent + 1h - 1ms}, draining, true, true, kEvent + 1h},
      {"draining, deadline: both are re-picked from it on",
       {.drain = drained(1h), .now = kEvent + 1h}, draining, false, false, kNever},
      {"draining, deadline 0: at once",
       {.drain = drained(0s), .now = kEvent}, draining, false, false, kNever},
      {"down: TCP stays for the grace, UDP is re-picked at once",
       {.health = gone_down(), .now = kEvent}, down, true, false, kEvent + 10s},
      {"down: just before the end of the grace",
       {.health = gone_down(), .now = kEvent + 10s - 1ms}, down, true, false, kEvent + 10s},
      {"down: past the grace TCP is re-picked",
       {.health = gone_down(), .now = kEvent + 10s}, down, false, false, kNever},
      {"next hop never resolved: placed flows are not moved (their packets are dropped)",
       {.path = PathState::never}, neigh_unresolved, true, true, kNever},
      {"next hop lost: placed flows go to the last known one",
       {.path = PathState::lost}, next_hop_lost, true, true, kNever},
      {"path too small for IPv6: placed flows stay",
       {.path = PathState::too_small}, path_too_small, true, true, kNever},
      {"not yet checked: placed flows stay",
       {.health = not_checked()}, unchecked, true, true, kNever},
      {"just started, checked, next hop still being resolved: counts as not yet checked",
       {.path = PathState::never, .now = kStart + 1s}, unchecked, true, true, kStart + 3s},
      {"just started, next hop still being resolved, but the check failed",
       {.health = gone_down(), .path = PathState::never, .now = kEvent}, neigh_unresolved,
       true, false, kEvent + 10s},
  };
  // clang-format on
  for (const Row& row : rows) {
    INFO(row.sentence);
    const auto verdict = row.given.verdict();
    CHECK(name_of(verdict.state) == name_of(row.state));
    CHECK(verdict.keeps_tcp == row.keeps_tcp);
    CHECK(verdict.keeps_udp == row.keeps_udp);
    CHECK(verdict.next_deadline == row.next);
    CHECK_FALSE(verdict.reason.empty());
  }
}

TEST_CASE("a first check is awaited for 10 s at most") {
  const auto fresh = [](Instant now) {
    return Case{.health = not_checked(), .now = now}.verdict();
  };
  CHECK(fresh(kStart).awaits_check);
  CHECK(fresh(kStart).next_deadline == kStart + 10s);
  CHECK(fresh(kStart + 10s - 1ms).awaits_check);
  CHECK_FALSE(fresh(kStart + 10s).awaits_check);
  CHECK(fresh(kStart + 10s).state == BackendState::unchecked);
  CHECK(fresh(kStart + 10s).keeps_tcp);
  CHECK(fresh(kStart + 10s).reason == "not checked yet (new flows no longer wait for it)");

  SECTION("a next hop that is being resolved is awaited, too; it has its own, shorter time") {
    const Case resolving{.path = PathState::never, .now = kStart};
    CHECK(resolving.verdict().awaits_check);
    CHECK(resolving.verdict().next_deadline == kStart + 3s);
  }
  SECTION("whatever else the state is, nothing is awaited") {
    CHECK_FALSE(Case{.now = kStart}.verdict().awaits_check);
    CHECK_FALSE(Case{.health = gone_down(), .now = kEvent}.verdict().awaits_check);
    CHECK_FALSE(Case{.path = PathState::lost, .now = kStart}.verdict().awaits_check);
  }
}

TEST_CASE("when several things hold, the worst names the state and each can end placed flows") {
  SECTION("drained and then down: the grace ends TCP before the drain would") {
    const Case both{.health = gone_down(), .drain = drained(1h), .now = kEvent + 10s};
    CHECK(both.verdict().state == BackendState::down);
    CHECK_FALSE(both.verdict().keeps_tcp);
  }
  SECTION("down and drained with a short deadline: the deadline ends TCP before the grace") {
    const Case both{.health = gone_down(), .drain = drained(3s), .now = kEvent + 3s};
    CHECK_FALSE(both.verdict().keeps_tcp);
    CHECK(
        Case{.health = gone_down(), .drain = drained(3s), .now = kEvent}.verdict().next_deadline ==
        kEvent + 3s);
  }
  SECTION("draining stands before weight 0, and its deadline holds") {
    const Case both{.drain = drained(1h), .weight = 0, .now = kEvent + 1h};
    CHECK(both.verdict().state == BackendState::draining);
    CHECK_FALSE(both.verdict().keeps_tcp);
  }
  SECTION("down and weight 0: the grace holds") {
    const Case both{.health = gone_down(), .weight = 0, .now = kEvent + 10s};
    CHECK(both.verdict().state == BackendState::down);
    CHECK_FALSE(both.verdict().keeps_tcp);
  }
  SECTION("not yet checked stands before all others: a restart moves nobody") {
    for (const auto path : {PathState::never, PathState::lost, PathState::too_small}) {
      const Case fresh{.health = not_checked(), .drain = drained(), .path = path, .weight = 0};
      CHECK(fresh.verdict().state == BackendState::unchecked);
    }
  }
  SECTION("never resolved stands before down, whose cause it is") {
    const Case both{.health = gone_down(), .path = PathState::never};
    CHECK(both.verdict().state == BackendState::neigh_unresolved);
    CHECK_FALSE(both.verdict().keeps_tcp);
  }
  SECTION("down stands before a lost next hop") {
    CHECK(Case{.health = gone_down(), .path = PathState::lost}.verdict().state ==
          BackendState::down);
  }
  SECTION("draining says that nothing worse is known") {
    for (const auto path : {PathState::never, PathState::lost, PathState::too_small})
      CHECK(Case{.drain = drained(), .path = path}.verdict().state != BackendState::draining);
  }
}

TEST_CASE("the reason tells what an operator needs, the lesser things too") {
  CHECK(Case{}.verdict().reason == "check passed");
  CHECK(Case{.health = gone_down()}.verdict().reason == "check failed: connection refused");
  CHECK(Case{.health = gone_down(), .drain = drained(), .weight = 0}.verdict().reason ==
        "check failed: connection refused (also draining) (also weight 0)");
  CHECK(Case{.path = PathState::never, .problem = "no route"}.verdict().reason ==
        "next hop never resolved: no route");
  CHECK(Case{.path = PathState::lost, .problem = "10.0.0.3 does not answer on eth1"}
            .verdict()
            .reason == "next hop lost: 10.0.0.3 does not answer on eth1");
  CHECK(Case{.drain = drained(1h), .now = kEvent}.verdict().reason ==
        "drained by an operator, placed flows stay to the deadline");
  CHECK(Case{.drain = drained(1h)}.verdict().reason ==
        "drained by an operator, the deadline has passed");
}

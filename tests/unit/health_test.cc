// SPDX-License-Identifier: Apache-2.0
#include "ctrl/state/health.h"

#include <string_view>
#include <tuple>
#include <vector>

#include "tests/catch.h"

using namespace holdfast;
using namespace std::chrono_literals;

namespace {

/// A state with rise 3 and fall 2 that is fed one result a second: '+' success, '-' failure.
struct Checked {
  HealthState state{{.rise = 3, .fall = 2}, 0s};
  Instant now{};
  std::vector<HealthEvent> events{};

  Checked& feed(std::string_view results) {
    for (const char result : results) {
      now += 1s;
      const auto event = result == '+' ? state.on_success(now) : state.on_failure(now, "refused");
      if (event) events.push_back(*event);
    }
    return *this;
  }
};

Health after(std::string_view results) { return Checked{}.feed(results).state.health(); }

}  // namespace

TEST_CASE("before any check a backend is unchecked, and says so") {
  const Checked fresh;
  CHECK(fresh.state.health() == Health::unchecked);
  CHECK(fresh.state.reason() == "not checked yet");
  CHECK(fresh.state.since() == 0s);
}

TEST_CASE("the first success after the start is enough for up, whatever rise says") {
  CHECK(after("+") == Health::up);
  CHECK(after("-+") == Health::up);
}

TEST_CASE("fall failures in a row make an unchecked backend down, one fewer does not") {
  CHECK(after("-") == Health::unchecked);
  CHECK(after("--") == Health::down);
}

TEST_CASE("an up backend goes down after fall failures in a row") {
  CHECK(after("+-") == Health::up);
  CHECK(after("+--") == Health::down);
}

TEST_CASE("a down backend needs rise successes in a row, also the first time") {
  CHECK(after("--++") == Health::down);
  CHECK(after("--+++") == Health::up);
}

TEST_CASE("the opposite result resets the count: rare misses never add up to a flap") {
  CHECK(after("+-+-+-+-+-+-+-+-+") == Health::up);
  CHECK(after("--++-++-++-++-") == Health::down);
  CHECK(after("--++-+++") == Health::up);
}

TEST_CASE("an event comes out when the state changes, and only then") {
  Checked backend;
  backend.feed(
      "+++--"
      "--+++"
      "+");
  REQUIRE(backend.events.size() == 3);
  const auto& [up, down, again] = std::tie(backend.events[0], backend.events[1], backend.events[2]);
  CHECK(up.before == Health::unchecked);
  CHECK(up.after == Health::up);
  CHECK(up.at == 1s);
  CHECK(up.reason == "check passed");
  CHECK(down.before == Health::up);
  CHECK(down.after == Health::down);
  CHECK(down.at == 5s);
  CHECK(down.reason == "check failed 2 times in a row: refused");
  CHECK(again.before == Health::down);
  CHECK(again.after == Health::up);
  CHECK(again.at == 10s);
  CHECK(again.reason == "check passed 3 times in a row");
}

TEST_CASE("since is the time of the last change, not of the last result") {
  Checked backend;
  CHECK(backend.feed("+++").state.since() == 1s);
  CHECK(backend.feed("--").state.since() == 5s);
  CHECK(backend.feed("--").state.since() == 5s);
}

TEST_CASE("while it stays down the reason follows the latest failure") {
  HealthState state({.rise = 1, .fall = 1}, 0s);
  CHECK(state.on_failure(1s, "no answer within 1s")->reason == "check failed: no answer within 1s");
  CHECK_FALSE(state.on_failure(2s, "connection refused"));
  CHECK(state.reason() == "check failed: connection refused");
}

TEST_CASE("new rules apply to later results and change no state by themselves") {
  Checked backend;
  backend.feed("+-");
  backend.state.set_rules({.rise = 1, .fall = 5});
  CHECK(backend.feed("---").state.health() == Health::up);
  CHECK(backend.feed("-").state.health() == Health::down);
  CHECK(backend.feed("+").state.health() == Health::up);
}

TEST_CASE("a pool without a check has its backends up at once") {
  const auto state = HealthState::without_check(7s);
  CHECK(state.health() == Health::up);
  CHECK(state.since() == 7s);
  CHECK(state.reason() == "no check configured");
}

TEST_CASE("when the check is removed from the configuration a down backend comes up") {
  Checked backend;
  backend.feed("--");
  const auto event = backend.state.on_check_removed(9s);
  REQUIRE(event);
  CHECK(event->after == Health::up);
  CHECK(backend.state.health() == Health::up);
  CHECK_FALSE(backend.state.on_check_removed(10s));
}

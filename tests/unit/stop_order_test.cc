// SPDX-License-Identifier: Apache-2.0
#include "ctrl/announce/stop_order.h"

#include "tests/catch.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using Step = StopOrder::Step;

struct Stop {
  StopOrder order{10s};
  Instant now = 500s;
  Presence announced = Presence::maybe;
  bool reachable = true;

  Step signal() {
    order.request(now);
    return look();
  }
  Step look() {
    order.update(announced, reachable, now);
    return order.step();
  }
  Step pass(std::chrono::milliseconds span) {
    now += span;
    return look();
  }
};

TEST_CASE("a stop asks routers to prefer others, withdraws, forwards on, and ends") {
  Stop stop;
  CHECK(stop.look() == Step::serving);
  CHECK(stop.order.text(stop.now).empty());
  CHECK(stop.signal() == Step::graceful_shutdown);
  CHECK(stop.order.phase() == AnnouncePhase::leaving);
  CHECK(stop.order.deadline() == stop.now + 2s);
  CHECK(stop.order.text(stop.now + 500ms) ==
        "routers are asked to prefer others, the withdrawal is in 1.5 s");
  CHECK(stop.pass(1999ms) == Step::graceful_shutdown);
  CHECK(stop.pass(1ms) == Step::withdrawing);
  CHECK(stop.order.phase() == AnnouncePhase::withdrawn);
  CHECK(stop.pass(200ms) == Step::withdrawing);
  stop.announced = Presence::absent;
  CHECK(stop.look() == Step::lingering);
  CHECK_FALSE(stop.order.not_withdrawn());
  CHECK(stop.order.text(stop.now + 3s) == "withdrawn, packets are forwarded for another 7.0 s");
  CHECK(stop.pass(9999ms) == Step::lingering);
  CHECK(stop.pass(1ms) == Step::done);
  CHECK_FALSE(stop.order.deadline());
}

TEST_CASE("with nothing announced the daemon stops at once") {
  Stop stop;
  stop.announced = Presence::absent;
  CHECK(stop.signal() == Step::done);
}

TEST_CASE("a speaker that does not answer costs bounded waits") {
  Stop stop;
  SECTION("gone before the signal: nothing can be asked of routers") {
    stop.reachable = false;
    CHECK(stop.signal() == Step::withdrawing);
  }
  SECTION("gone in the middle") {
    CHECK(stop.signal() == Step::graceful_shutdown);
    stop.reachable = false;
    CHECK(stop.pass(2s) == Step::withdrawing);
  }
  CHECK(stop.pass(1999ms) == Step::withdrawing);
  CHECK(stop.pass(1ms) == Step::lingering);
  CHECK(stop.order.not_withdrawn());
  CHECK(stop.pass(10s) == Step::done);
}

TEST_CASE("a second signal skips the waits but still withdraws, within a second") {
  Stop stop;
  stop.signal();
  SECTION("during graceful shutdown") {
    stop.pass(100ms);
    CHECK(stop.signal() == Step::withdrawing);
    SECTION("confirmed") {
      stop.pass(200ms);
      stop.announced = Presence::absent;
      CHECK(stop.look() == Step::done);
      CHECK_FALSE(stop.order.not_withdrawn());
    }
    SECTION("not confirmed") {
      CHECK(stop.pass(999ms) == Step::withdrawing);
      CHECK(stop.signal() == Step::withdrawing);  // a third one gives no more time
      CHECK(stop.pass(1ms) == Step::done);
      CHECK(stop.order.not_withdrawn());
    }
  }
  SECTION("during the withdrawal") {
    stop.pass(2s);
    stop.pass(1500ms);
    CHECK(stop.signal() == Step::withdrawing);
    CHECK(stop.pass(500ms) == Step::done);
  }
  SECTION("while lingering") {
    stop.pass(2s);
    stop.announced = Presence::absent;
    CHECK(stop.look() == Step::lingering);
    CHECK(stop.signal() == Step::done);
  }
}

TEST_CASE(
    "when the last route goes during graceful shutdown, packets are forwarded on all the same") {
  Stop stop;
  stop.signal();
  stop.announced = Presence::absent;
  CHECK(stop.pass(100ms) == Step::lingering);
  CHECK(stop.pass(10s) == Step::done);
}

TEST_CASE("what an earlier run may have left is waited for as if it was there") {
  Stop stop;
  stop.announced = Presence::unknown;
  stop.reachable = false;
  SECTION("the speaker answers: there is something") {
    CHECK(stop.signal() == Step::withdrawing);
    stop.announced = Presence::maybe;
    stop.reachable = true;
    CHECK(stop.pass(10ms) == Step::withdrawing);
    stop.announced = Presence::absent;
    CHECK(stop.pass(200ms) == Step::lingering);
    CHECK_FALSE(stop.order.not_withdrawn());
  }
  SECTION("the speaker answers, or has gone: there is nothing") {
    CHECK(stop.signal() == Step::withdrawing);
    stop.announced = Presence::absent;
    CHECK(stop.pass(10ms) == Step::done);
    CHECK_FALSE(stop.order.not_withdrawn());
  }
  SECTION("the speaker never answers") {
    CHECK(stop.signal() == Step::withdrawing);
    CHECK(stop.pass(2s) == Step::lingering);
    CHECK(stop.order.not_withdrawn());
    CHECK(stop.pass(10s) == Step::done);
  }
  SECTION("and it can not be asked to be made the last choice") {
    stop.reachable = true;
    CHECK(stop.signal() == Step::withdrawing);
  }
}

TEST_CASE("a withdrawal that is confirmed late counts from then on") {
  Stop stop;
  stop.reachable = false;
  stop.signal();
  CHECK(stop.pass(2s) == Step::lingering);
  CHECK(stop.pass(7s) == Step::lingering);
  CHECK(stop.order.text(stop.now) ==
        "the withdrawal is not confirmed, packets are forwarded for another 3.0 s");
  stop.reachable = true;
  stop.announced = Presence::absent;
  CHECK(stop.look() == Step::lingering);
  CHECK_FALSE(stop.order.not_withdrawn());
  CHECK(stop.order.text(stop.now) == "withdrawn, packets are forwarded for another 10.0 s");
  stop.reachable = false;  // that is no news any more
  CHECK(stop.pass(9999ms) == Step::lingering);
  CHECK(stop.pass(1ms) == Step::done);
}

TEST_CASE("nothing happens without a signal, whatever the speaker does") {
  Stop stop;
  stop.reachable = false;
  CHECK(stop.pass(100s) == Step::serving);
  stop.announced = Presence::absent;
  CHECK(stop.pass(100s) == Step::serving);
}

}  // namespace
}  // namespace holdfast

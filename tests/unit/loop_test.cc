// SPDX-License-Identifier: Apache-2.0
#include "ctrl/loop/loop.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/catch.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

/// Turns the loop until `done` or two seconds passed.
template <class Condition>
bool turn_until(Loop& loop, Condition done) {
  const auto limit = boot_now() + 2s;
  while (!done() && boot_now() < limit) loop.run_once(20ms);
  return done();
}

TEST_CASE("timers fire in the order of their times, not of their making") {
  Loop loop;
  std::vector<int> fired;
  loop.call_after(30ms, "third", [&] { fired.push_back(3); });
  loop.call_after(10ms, "first", [&] { fired.push_back(1); });
  loop.call_after(20ms, "second", [&] { fired.push_back(2); });
  CHECK(turn_until(loop, [&] { return fired.size() == 3; }));
  CHECK(fired == std::vector<int>{1, 2, 3});
}

TEST_CASE("a timer does not fire early") {
  Loop loop;
  const auto start = boot_now();
  Instant at{};
  loop.call_after(30ms, "timer", [&] { at = boot_now(); });
  CHECK(turn_until(loop, [&] { return at != Instant{}; }));
  CHECK(at - start >= 30ms);
}

TEST_CASE("a cancelled timer does not fire, even when an earlier one of its turn cancels it") {
  Loop loop;
  bool fired = false;
  const auto past = boot_now() - 1s;
  Loop::TimerId second = 0;
  loop.call_at(past, "first", [&] { loop.cancel(second); });
  second = loop.call_at(past + 1ms, "second", [&] { fired = true; });
  loop.run_once(0ms);
  loop.run_once(0ms);
  CHECK_FALSE(fired);
}

TEST_CASE("a periodic timer fires until it is cancelled, also from its own callback") {
  Loop loop;
  int count = 0;
  Loop::TimerId id = 0;
  id = loop.call_every(2ms, "periodic", [&] {
    if (++count == 3) loop.cancel(id);
  });
  turn_until(loop, [&] { return count == 3; });
  const auto until = boot_now() + 30ms;
  while (boot_now() < until) loop.run_once(5ms);
  CHECK(count == 3);
}

TEST_CASE("a timer that adds one for now does not starve the others") {
  Loop loop;
  int spins = 0;
  bool stop = false;
  std::function<void()> again = [&] {
    ++spins;
    if (!stop) loop.call_at(boot_now(), "again", again);
  };
  loop.call_at(boot_now(), "again", again);
  bool other = false;
  loop.call_after(5ms, "other", [&] { other = true; });
  CHECK(turn_until(loop, [&] { return other; }));
  stop = true;
  CHECK(spins > 0);
}

TEST_CASE("a descriptor's callback may stop watching it and close it") {
  Loop loop;
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  int calls = 0;
  loop.watch(ends[0], EPOLLIN, "socket", [&](std::uint32_t events) {
    ++calls;
    CHECK((events & EPOLLIN) != 0);
    loop.unwatch(ends[0]);
    close(ends[0]);
  });
  REQUIRE(write(ends[1], "x", 1) == 1);
  CHECK(turn_until(loop, [&] { return calls > 0; }));
  loop.run_once(5ms);
  CHECK(calls == 1);
  close(ends[1]);
}

TEST_CASE("an event for a closed descriptor never reaches the new owner of its number") {
  Loop loop;
  int a[2];
  int b[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, a) == 0);
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, b) == 0);
  bool reached = false;
  int replaced = 0;
  // Both are readable in one turn; whichever comes first closes the other and gives its number to
  // a socket that has nothing to read.
  const auto replace = [&](int victim) {
    return [&, victim](std::uint32_t) {
      ++replaced;
      loop.unwatch(a[0]);
      loop.unwatch(b[0]);
      int fresh[2];
      REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, fresh) == 0);
      REQUIRE(dup2(fresh[0], victim) == victim);
      loop.watch(victim, EPOLLIN, "fresh", [&](std::uint32_t) { reached = true; });
    };
  };
  loop.watch(a[0], EPOLLIN, "a", replace(b[0]));
  loop.watch(b[0], EPOLLIN, "b", replace(a[0]));
  REQUIRE(write(a[1], "x", 1) == 1);
  REQUIRE(write(b[1], "x", 1) == 1);
  for (int i = 0; i < 3; ++i) loop.run_once(2ms);
  CHECK(replaced == 1);
  CHECK_FALSE(reached);
}

TEST_CASE("work from other threads runs in the loop's thread, in order, and stop ends it") {
  Loop loop;
  std::vector<int> order;
  std::thread::id ran_in;
  std::thread other([&] {
    for (int i = 0; i < 100; ++i) {
      loop.post([&, i] {
        order.push_back(i);
        ran_in = std::this_thread::get_id();
      });
    }
    loop.post([&] { loop.stop(); });
  });
  loop.run();
  other.join();
  REQUIRE(order.size() == 100);
  CHECK(std::is_sorted(order.begin(), order.end()));
  CHECK(ran_in == std::this_thread::get_id());
}

TEST_CASE("stop from another thread wakes a sleeping loop") {
  Loop loop;
  const auto start = boot_now();
  std::thread other([&] {
    std::this_thread::sleep_for(20ms);
    loop.stop();
  });
  loop.run();
  other.join();
  CHECK(boot_now() - start < 900ms);  // it sleeps a second at a time
}

TEST_CASE("a callback that throws does not end the loop") {
  Loop loop;
  bool later = false;
  loop.call_after(0ms, "a test that throws", [] { throw std::runtime_error("on purpose"); });
  loop.call_after(5ms, "later", [&] { later = true; });
  CHECK(turn_until(loop, [&] { return later; }));
}

TEST_CASE("a callback that holds the loop too long is counted") {
  Loop loop;
  loop.call_after(0ms, "a slow test", [] { std::this_thread::sleep_for(60ms); });
  loop.run_once(10ms);
  loop.run_once(10ms);
  CHECK(loop.slow_callbacks() >= 1);  // more on a machine that is busy itself
}

}  // namespace
}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
#include "lb/idle_wait.h"

#include <unistd.h>

#include <array>
#include <chrono>
#include <thread>

#include "tests/catch.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// A pipe stands for a queue's socket: readable when a packet waits.
class Pipe {
 public:
  Pipe() { REQUIRE(::pipe(ends_.data()) == 0); }
  ~Pipe() {
    ::close(ends_[0]);
    close_writer();
  }
  [[nodiscard]] int reader() const { return ends_[0]; }
  void write() { REQUIRE(::write(ends_[1], "x", 1) == 1); }
  void close_writer() {
    if (ends_[1] >= 0) ::close(ends_[1]);
    ends_[1] = -1;
  }

 private:
  std::array<int, 2> ends_{};
};

Clock::duration time_of_sleep(IdleWait& idle, Clock::duration longest = IdleWait::kLongest) {
  const auto begin = Clock::now();
  idle.sleep(longest);
  return Clock::now() - begin;
}

TEST_CASE("a worker with descriptors sleeps until the heartbeat is due") {
  Pipe queue;
  IdleWait idle({queue.reader()}, true);
  CHECK(time_of_sleep(idle) >= IdleWait::kLongest - 1ms);
  CHECK(IdleWait::kLongest <= 100ms);
}

TEST_CASE("a worker that expects something sleeps no longer than it says") {
  Pipe queue;
  IdleWait idle({queue.reader()}, true);
  CHECK(time_of_sleep(idle, 1ms) >= 1ms);
  CHECK(time_of_sleep(idle, 1ms) < IdleWait::kLongest / 2);
}

TEST_CASE("a packet that waits already lets no worker sleep") {
  Pipe queue;
  IdleWait idle({queue.reader()}, true);
  queue.write();
  CHECK(time_of_sleep(idle) < IdleWait::kLongest / 2);
  CHECK(time_of_sleep(idle) < IdleWait::kLongest / 2);  // it was not taken yet
}

TEST_CASE("waking ends a sleep once, also when it comes first") {
  Pipe queue;
  IdleWait idle({queue.reader()}, true);
  idle.wake();
  CHECK(time_of_sleep(idle) < IdleWait::kLongest / 2);
  CHECK(time_of_sleep(idle) >= IdleWait::kLongest - 1ms);
  std::thread other([&idle] {
    std::this_thread::sleep_for(5ms);
    idle.wake();
  });
  CHECK(time_of_sleep(idle) < IdleWait::kLongest);
  other.join();
}

TEST_CASE("without descriptors the sleeps grow to a millisecond, and a packet makes them short") {
  IdleWait idle({}, false);
  for (int i = 0; i < 10; ++i) idle.sleep();
  auto grown = Clock::duration::max();  // the least of some: the machine may be busy
  for (int i = 0; i < 20; ++i) grown = std::min(grown, time_of_sleep(idle));
  CHECK(grown >= IdleWait::kLongestBlind - 100us);
  CHECK(grown < 20ms);
  auto fresh = Clock::duration::max();
  for (int i = 0; i < 50; ++i) {
    idle.reset();
    fresh = std::min(fresh, time_of_sleep(idle));
  }
  CHECK(fresh < IdleWait::kLongestBlind);
}

TEST_CASE("one queue without a descriptor keeps the sleeps short for all") {
  Pipe queue;
  IdleWait idle({queue.reader()}, false);
  for (int i = 0; i < 20; ++i) idle.sleep();
  auto shortest = Clock::duration::max();
  for (int i = 0; i < 20; ++i) shortest = std::min(shortest, time_of_sleep(idle));
  CHECK(shortest < IdleWait::kLongest);
}

TEST_CASE("a socket whose interface has gone does not keep its worker awake") {
  Pipe dead;
  Pipe alive;
  IdleWait idle({dead.reader(), alive.reader()}, true);
  dead.close_writer();  // poll reports POLLHUP from now on, as it does for a dead AF_XDP socket
  idle.sleep();
  CHECK(time_of_sleep(idle) >= IdleWait::kLongest - 1ms);
  alive.write();
  CHECK(time_of_sleep(idle) < IdleWait::kLongest / 2);
}

}  // namespace
}  // namespace holdfast

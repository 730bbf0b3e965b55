// SPDX-License-Identifier: Apache-2.0
#include "lb/tsc_clock.h"

#include <chrono>
#include <thread>

#include "tests/catch.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

Instant boot_time() {
  timespec ts{};
  clock_gettime(CLOCK_BOOTTIME, &ts);
  return std::chrono::seconds(ts.tv_sec) + std::chrono::nanoseconds(ts.tv_nsec);
}

/// Ticks a second, measured: the test runs without EAL, which knows the number.
std::uint64_t measured_hz() {
  const Instant begin = boot_time();
  const std::uint64_t ticks = rte_rdtsc();
  std::this_thread::sleep_for(20ms);
  const auto passed = static_cast<std::uint64_t>((boot_time() - begin).count());
  return (rte_rdtsc() - ticks) * 1'000'000'000 / passed;
}

TEST_CASE("the poll loop's clock follows the boot-time clock and never runs backwards") {
  // Simulated: a counter of 2 GHz read every 7 us for a second. Also when the number of ticks a
  // second is told wrongly: each millisecond corrects it.
  constexpr std::uint64_t kHz = 2'000'000'000;
  for (const double error : {1.0, 0.8, 1.25}) {
    INFO("ticks told are " << error << " of the real ones");
    const Instant start = 1000s;
    TscClock clock(static_cast<std::uint64_t>(static_cast<double>(kHz) * error), 5, start);
    Instant previous{0};
    bool forward = true;
    Instant farthest{0};
    for (Instant passed{0}; passed < 1s; passed += 7us) {
      const Instant truth = start + passed;
      const auto ticks = 5 + static_cast<std::uint64_t>(passed.count()) * (kHz / 1'000'000'000);
      const Instant now = clock.at(ticks, [truth] { return truth; });
      forward &= now >= previous;
      previous = now;
      farthest = std::max({farthest, truth - now, now - truth});
    }
    CHECK(forward);
    // A millisecond of counting with a rate that is a quarter off, and the reading after it.
    CHECK(farthest <= 300us);
  }
}

TEST_CASE("a boot-time clock that was read late never turns the poll loop's clock back") {
  TscClock clock(1'000'000, 0, 1s);
  CHECK(clock.at(1000, [] { return Instant{1s + 50ms}; }) == 1s + 50ms);  // descheduled meanwhile
  CHECK(clock.at(2000, [] { return Instant{1s + 2ms}; }) == 1s + 50ms);
  CHECK(clock.at(3000, [] { return Instant{1s + 60ms}; }) == 1s + 60ms);
}

TEST_CASE("the poll loop's clock is right after a sleep") {
  TscClock clock(measured_hz());
  std::this_thread::sleep_for(100ms);
  const Instant before = boot_time();
  const Instant now = clock.now();
  // It was read between the two, give or take the millisecond that it counts by itself.
  CHECK(now >= before - 2ms);
}

}  // namespace
}  // namespace holdfast

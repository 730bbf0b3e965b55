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
  // Also when the number of ticks a second is told wrongly: it is corrected each millisecond.
  for (const double error : {1.0, 0.8, 1.25}) {
    TscClock clock(static_cast<std::uint64_t>(static_cast<double>(measured_hz()) * error));
    Instant previous{0};
    const Instant end = boot_time() + 30ms;
    bool forward = true;
    Instant farthest{0};
    while (boot_time() < end) {
      const Instant before = boot_time();
      const Instant now = clock.now();
      const Instant after = boot_time();
      forward &= now >= previous;
      previous = now;
      farthest = std::max({farthest, before - now, now - after});
    }
    INFO("ticks told are " << error << " of the real ones");
    CHECK(forward);
    CHECK(farthest < 5ms);
  }
}

TEST_CASE("the poll loop's clock is right after a sleep") {
  TscClock clock(measured_hz());
  std::this_thread::sleep_for(100ms);
  const Instant before = boot_time();
  const Instant now = clock.now();
  CHECK(now >= before - 2ms);
  CHECK(now <= boot_time() + 2ms);
}

}  // namespace
}  // namespace holdfast

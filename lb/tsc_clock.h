// SPDX-License-Identifier: Apache-2.0
// The boot-time clock for a poll loop: reads the CPU's time stamp counter (a few cycles) and asks
// the kernel only once a millisecond, so it follows CLOCK_BOOTTIME without drifting away, on
// machines too where that clock costs a system call. One object a thread; never runs backwards.
#pragma once

#include <rte_cycles.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "lib/base/instant.h"

namespace holdfast {

class TscClock {
 public:
  /// `hz`: ticks of the counter in a second (rte_get_tsc_hz).
  explicit TscClock(std::uint64_t hz) : TscClock(hz, rte_rdtsc(), boot_time()) {}
  /// From a given reading of both, for tests.
  TscClock(std::uint64_t hz, std::uint64_t ticks, Instant boot)
      : ticks_per_ms_(std::max<std::uint64_t>(1, hz / 1000)), base_ticks_(ticks), base_(boot) {}

  [[nodiscard]] Instant now() { return at(rte_rdtsc(), boot_time); }

  /// The time when the counter stands at `ticks`; `read_boot` is called once a millisecond.
  template <class ReadBoot>
  [[nodiscard]] Instant at(std::uint64_t ticks, ReadBoot&& read_boot) {
    if (ticks - base_ticks_ >= ticks_per_ms_) {
      base_ = read_boot();
      base_ticks_ = ticks;
    }
    const std::uint64_t since = (ticks - base_ticks_) * 1'000'000 / ticks_per_ms_;
    // Where counting ran ahead, the clock waits for the truth instead of turning back.
    latest_ = std::max(latest_, base_ + std::chrono::nanoseconds(since));
    return latest_;
  }

 private:
  [[nodiscard]] static Instant boot_time() {
    timespec ts{};
    clock_gettime(CLOCK_BOOTTIME, &ts);
    return Instant{std::chrono::seconds(ts.tv_sec)} + std::chrono::nanoseconds(ts.tv_nsec);
  }

  std::uint64_t ticks_per_ms_;
  std::uint64_t base_ticks_;
  Instant base_;  // the time when the counter stood at base_ticks_
  Instant latest_{0};
};

}  // namespace holdfast

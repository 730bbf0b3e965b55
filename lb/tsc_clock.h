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
  explicit TscClock(std::uint64_t hz) : ticks_per_ms_(std::max<std::uint64_t>(1, hz / 1000)) {
    synchronise(rte_rdtsc());
  }

  [[nodiscard]] Instant now() {
    const std::uint64_t ticks = rte_rdtsc();
    if (ticks - base_ticks_ >= ticks_per_ms_) synchronise(ticks);
    const std::uint64_t since = (ticks - base_ticks_) * 1'000'000 / ticks_per_ms_;
    return base_ + std::chrono::nanoseconds(since);
  }

 private:
  void synchronise(std::uint64_t ticks) {
    timespec ts{};
    clock_gettime(CLOCK_BOOTTIME, &ts);
    base_ =
        std::max(base_ + std::chrono::milliseconds(base_ticks_ == 0 ? 0 : 1),
                 Instant{std::chrono::seconds(ts.tv_sec)} + std::chrono::nanoseconds(ts.tv_nsec));
    base_ticks_ = ticks;
  }

  std::uint64_t ticks_per_ms_;
  std::uint64_t base_ticks_ = 0;
  Instant base_{0};  // the time when the counter stood at base_ticks_
};

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// The clock of the control plane: CLOCK_BOOTTIME. It also runs while the machine sleeps and no one
// can set it, so a jump of the wall clock changes no timer. Any thread.
#pragma once

#include <time.h>

#include <chrono>

#include "lib/base/instant.h"

namespace holdfast {

[[nodiscard]] inline Instant boot_now() {
  timespec ts{};
  clock_gettime(CLOCK_BOOTTIME, &ts);
  return std::chrono::seconds{ts.tv_sec} + std::chrono::nanoseconds{ts.tv_nsec};
}

}  // namespace holdfast

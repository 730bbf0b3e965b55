// SPDX-License-Identifier: Apache-2.0
// How time is passed around: pure code never reads a clock, it is told what time it is.
#pragma once

#include <chrono>

namespace holdfast {

/// A point in time: nanoseconds since the machine booted (CLOCK_BOOTTIME). Setting the wall clock
/// does not move it, and it runs on while the machine is suspended.
using Instant = std::chrono::nanoseconds;

}  // namespace holdfast

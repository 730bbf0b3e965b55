// SPDX-License-Identifier: Apache-2.0
// What ctrl may ask about a service's streams, the flows that were established: how long they last.
// Values.
#pragma once

#include <cstdint>

#include "lib/durations/lifetimes.h"

namespace holdfast {

/// Those of one service that are over, or were lost from sight, since the start.
struct StreamRecords {
  Lifetimes lifetimes{};
  std::uint64_t reset = 0;     // of those that ended: by the client's RST
  std::uint64_t excluded = 0;  // began before their first packet here, so nobody knows their age

  StreamRecords& operator+=(const StreamRecords& other) {
    lifetimes += other.lifetimes;
    reset += other.reset;
    excluded += other.excluded;
    return *this;
  }
};

}  // namespace holdfast

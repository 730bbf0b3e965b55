// SPDX-License-Identifier: Apache-2.0
// Whether the workers live: a worker's heartbeat moves at least ten times a second, also when it is
// idle. Fed with readings of the counters. Pure; owned by ControlPlane.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/base/instant.h"
#include "lib/model/stats.h"

namespace holdfast {

class WorkerPulse {
 public:
  /// A heartbeat that stands still for longer than this is a stuck worker.
  static constexpr std::chrono::seconds kPatience{3};

  /// What changed with a reading, for the log.
  struct Change {
    unsigned worker = 0;
    bool alive = false;
  };
  std::vector<Change> add(Instant now, std::span<const WorkerStats> workers);

  /// Workers in the last reading, and how many of them live.
  [[nodiscard]] std::size_t workers() const { return beats_.size(); }
  [[nodiscard]] std::size_t alive() const;

 private:
  struct Beat {
    std::uint64_t heartbeat = 0;
    Instant moved{};
    bool alive = true;  // until shown otherwise
  };
  std::vector<Beat> beats_;  // by position in the reading
};

}  // namespace holdfast

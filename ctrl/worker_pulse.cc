// SPDX-License-Identifier: Apache-2.0
#include "ctrl/worker_pulse.h"

#include <algorithm>

namespace holdfast {

std::vector<WorkerPulse::Change> WorkerPulse::add(Instant now,
                                                  std::span<const WorkerStats> workers) {
  std::vector<Change> changes;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    if (i >= beats_.size()) {
      beats_.push_back({.heartbeat = workers[i].heartbeat, .moved = now});
      continue;
    }
    auto& beat = beats_[i];
    if (workers[i].heartbeat != beat.heartbeat) {
      beat.heartbeat = workers[i].heartbeat;
      beat.moved = now;
    }
    const bool alive = now - beat.moved <= kPatience;
    if (alive != beat.alive) changes.push_back({workers[i].worker, alive});
    beat.alive = alive;
  }
  beats_.resize(workers.size());
  return changes;
}

std::size_t WorkerPulse::alive() const {
  return static_cast<std::size_t>(
      std::count_if(beats_.begin(), beats_.end(), [](const Beat& beat) { return beat.alive; }));
}

}  // namespace holdfast

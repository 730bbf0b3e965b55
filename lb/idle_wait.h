// SPDX-License-Identifier: Apache-2.0
// How a worker sleeps when nothing comes: on the descriptors of its queues if they have some, else
// for short spells that grow. A wake-up descriptor ends every sleep, so stopping is prompt. Owned
// by one worker; wake() may be called by any thread.
#pragma once

#include <poll.h>

#include <chrono>
#include <vector>

#include "lib/base/unique_fd.h"

namespace holdfast {

class IdleWait {
 public:
  /// Short enough for a heartbeat of ten a second.
  static constexpr std::chrono::milliseconds kLongest{50};
  static constexpr std::chrono::microseconds kShortest{50};
  static constexpr std::chrono::microseconds kLongestBlind{1000};

  /// `complete`: every queue has its descriptor among `descriptors`. Throws std::system_error when
  /// the system has no descriptor left (start-up only).
  IdleWait(const std::vector<int>& descriptors, bool complete);

  /// Packets came: the next sleep is a short one again.
  void reset() { pause_ = kShortest; }
  /// Returns when a descriptor is readable, on wake(), or when the time is over: `longest`, or with
  /// queues that have no descriptor the present spell, which doubles up to kLongestBlind, if that
  /// is shorter.
  void sleep(std::chrono::nanoseconds longest = kLongest);
  /// Any thread.
  void wake();

 private:
  UniqueFd wakeup_;
  std::vector<pollfd> polled_;  // the wake-up first
  bool complete_;
  std::chrono::microseconds pause_{kShortest};
};

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// The time that the load balancer sees: the capture's, from its first packet on. It stands still
// where the capture's goes back. Pure; one owner.
#pragma once

#include <algorithm>
#include <chrono>

#include "lib/base/instant.h"

namespace holdfast {

class CaptureClock {
 public:
  /// `start`: what the first packet's time becomes.
  explicit CaptureClock(Instant start) : start_(start), now_(start) {}

  /// `time` is since 1970.
  Instant advance_to(std::chrono::nanoseconds time) {
    if (!running_) first_ = time;
    running_ = true;
    now_ = std::max(now_, start_ + (time - first_));
    return now_;
  }
  Instant pass(std::chrono::nanoseconds duration) { return now_ += duration; }

  [[nodiscard]] Instant now() const { return now_; }
  /// Of the capture so far.
  [[nodiscard]] std::chrono::nanoseconds elapsed() const { return now_ - start_; }
  /// now() as the capture tells it, since 1970.
  [[nodiscard]] std::chrono::nanoseconds capture_time() const { return first_ + elapsed(); }

 private:
  Instant start_;
  Instant now_;
  std::chrono::nanoseconds first_{0};
  bool running_ = false;
};

}  // namespace holdfast

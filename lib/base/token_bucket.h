// SPDX-License-Identifier: Apache-2.0
// A rate limit: so many events a second on average, and a burst of as many as one second earns.
// Pure: time is an argument. One owner, no locks.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "lib/base/instant.h"

namespace holdfast {

class TokenBucket {
 public:
  /// `rate`: events a second, 0 refuses all. The bucket starts full.
  explicit TokenBucket(std::uint32_t rate) : rate_(rate), credit_(kCost * rate) {}

  /// Takes one token; false: the rate is used up. A `now` before an earlier one earns nothing.
  [[nodiscard]] bool take(Instant now) {
    refill(now);
    if (credit_ < kCost) return false;
    credit_ -= kCost;
    return true;
  }

 private:
  /// A token costs 1e9 units and a nanosecond earns `rate` of them: exact, whatever the rate and
  /// however often the bucket is asked.
  static constexpr std::uint64_t kCost = 1'000'000'000;

  void refill(Instant now) {
    if (now <= last_) return;
    // A second fills an empty bucket, so a longer pause needs no larger product.
    const auto earned =
        std::min<std::uint64_t>(kCost, static_cast<std::uint64_t>((now - last_).count()));
    last_ = now;
    credit_ = std::min(kCost * rate_, credit_ + earned * rate_);
  }

  std::uint64_t rate_;
  std::uint64_t credit_;  // at most kCost * 2^32: fits, and so does twice that
  Instant last_{0};
};

}  // namespace holdfast

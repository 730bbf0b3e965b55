// SPDX-License-Identifier: Apache-2.0
// How long things last when the end of some of them was not seen: the product-limit estimator of
// E. L. Kaplan and P. Meier, "Nonparametric Estimation from Incomplete Observations", Journal of
// the American Statistical Association 53 (1958), 457-481. Pure; any thread.
//
// Among the streams that have ended the short ones are too many: a long one that began as early is
// still open. The estimator takes each open one for what is known of it, that it lasted at least so
// long ("censored"), and asks at each duration: of those that came so far, what share ended here?
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

#include "lib/durations/duration_bins.h"

namespace holdfast {

/// How many of each duration were observed, by bin (lib/durations/duration_bins.h).
struct Lifetimes {
  using Counts = std::array<std::uint64_t, kDurationBins>;

  Counts ended{};     // lasted so long
  Counts censored{};  // lasted at least so long; the end was not seen

  Lifetimes& operator+=(const Lifetimes& other);
};

[[nodiscard]] std::uint64_t sum_of(const Lifetimes::Counts& counts);

struct LifetimeEstimate {
  std::chrono::duration<double> time{0};
  bool more = false;  // more than `time`; how much more can not be known yet

  friend bool operator==(const LifetimeEstimate&, const LifetimeEstimate&) = default;
};

/// What `share` (0 < share < 1) of all do not outlast: 0.5 is the median. The middle of a bin, so
/// within 1/16 of what the same observations would give unbinned. "More" when too many are censored
/// for the curve to come down so far: then more than the longest observation. nullopt: nothing was
/// observed.
[[nodiscard]] std::optional<LifetimeEstimate> lifetime_quantile(const Lifetimes& observed,
                                                                double share);

/// The longest observation; "more" when it is a censored one.
[[nodiscard]] std::optional<LifetimeEstimate> longest_lifetime(const Lifetimes& observed);

}  // namespace holdfast

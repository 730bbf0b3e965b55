// SPDX-License-Identifier: Apache-2.0
#include "lib/durations/lifetimes.h"

#include <numeric>

namespace holdfast {

Lifetimes& Lifetimes::operator+=(const Lifetimes& other) {
  for (std::size_t bin = 0; bin < kDurationBins; ++bin) {
    ended[bin] += other.ended[bin];
    censored[bin] += other.censored[bin];
  }
  return *this;
}

std::uint64_t sum_of(const Lifetimes::Counts& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

std::optional<LifetimeEstimate> lifetime_quantile(const Lifetimes& observed, double share) {
  // For the product of many factors that in theory makes exactly 1 - share.
  constexpr double kRounding = 1e-9;
  std::uint64_t at_risk = sum_of(observed.ended) + sum_of(observed.censored);
  double surviving = 1;
  for (std::size_t bin = 0; at_risk > 0; ++bin) {
    // Who is censored in a bin counts as at risk in all of it, as with ties in the paper: at most
    // one bin too long.
    const auto ended = observed.ended[bin];
    if (ended > 0) {
      surviving *= 1 - static_cast<double>(ended) / static_cast<double>(at_risk);
      if (surviving <= 1 - share + kRounding) return LifetimeEstimate{.time = middle_of(bin)};
    }
    at_risk -= ended + observed.censored[bin];
  }
  auto beyond = longest_lifetime(observed);
  if (beyond) beyond->more = true;
  return beyond;
}

std::optional<LifetimeEstimate> longest_lifetime(const Lifetimes& observed) {
  for (std::size_t bin = kDurationBins; bin-- > 0;) {
    if (observed.censored[bin] > 0) return LifetimeEstimate{.time = shortest_in(bin), .more = true};
    if (observed.ended[bin] > 0) return LifetimeEstimate{.time = middle_of(bin)};
  }
  return std::nullopt;
}

}  // namespace holdfast

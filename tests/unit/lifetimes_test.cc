// SPDX-License-Identifier: Apache-2.0
// Durations in bins, and what Kaplan and Meier's estimator makes of them: worked examples, and
// simulated streams of which the truth is known, seen through a window as a load balancer sees
// them.
#include "lib/durations/lifetimes.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "tests/catch.h"

namespace holdfast {
namespace {

using Seconds = std::chrono::duration<double>;

std::size_t bin_of(double seconds) {
  return duration_bin(Quarters{static_cast<std::int64_t>(seconds * 4)});
}

/// Streams that begin evenly over `window` seconds and last as `life` draws; who is open at the end
/// of the window is censored at its age.
struct Seen {
  Lifetimes lifetimes{};
  std::vector<double> ended{};  // seconds

  template <class Life>
  Seen(double window, Life life, std::uint64_t seed) {
    constexpr int kStreams = 40'000;
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> beginning(0, window);
    for (int i = 0; i < kStreams; ++i) {
      const double begins = beginning(random);
      const double lasts = life(random);
      if (begins + lasts <= window) {
        ++lifetimes.ended[bin_of(lasts)];
        ended.push_back(lasts);
      } else {
        ++lifetimes.censored[bin_of(window - begins)];
      }
    }
    std::sort(ended.begin(), ended.end());
  }
  /// What one would say who looks at the ended ones alone.
  [[nodiscard]] double naive(double share) const {
    return ended[static_cast<std::size_t>(static_cast<double>(ended.size()) * share)];
  }
  [[nodiscard]] LifetimeEstimate ours(double share) const {
    return lifetime_quantile(lifetimes, share).value();
  }
};

/// Half of a bin, and what 40,000 streams leave to chance.
constexpr double kTolerance = 1.0 / 16 + 0.03;

void check_near(const LifetimeEstimate& estimate, double truth) {
  CAPTURE(estimate.time.count(), truth);
  CHECK_FALSE(estimate.more);
  CHECK(std::abs(estimate.time.count() - truth) <= kTolerance * truth);
}

}  // namespace

TEST_CASE("every duration is in its bin, and bins follow each other without a gap") {
  CHECK(shortest_in(0) == Quarters{0});
  for (std::size_t bin = 0; bin < kDurationBins; ++bin) {
    REQUIRE(duration_bin(shortest_in(bin)) == bin);
    REQUIRE(duration_bin(longest_in(bin)) == bin);
    if (bin > 0) REQUIRE(shortest_in(bin) == longest_in(bin - 1) + Quarters{1});
  }
  CHECK(longest_in(kDurationBins - 1) == Quarters{(1 << kDurationBits) - 1});
}

TEST_CASE("durations up to 4 s are exact, and beyond a bin's middle is off by less than 1/16") {
  for (std::int64_t quarters = 0; quarters < 16; ++quarters)
    CHECK(middle_of(duration_bin(Quarters{quarters})) == Quarters{quarters});
  for (std::size_t bin = 16; bin < kDurationBins; ++bin)
    for (const Quarters edge : {shortest_in(bin), longest_in(bin)})
      REQUIRE(std::abs(Seconds(middle_of(bin) - edge).count()) * 16 < Seconds(edge).count());
}

TEST_CASE("durations outside the bins count as the shortest or the longest") {
  CHECK(duration_bin(Quarters{-1}) == 0);
  CHECK(duration_bin(Quarters{std::int64_t{1} << 40}) == kDurationBins - 1);
}

TEST_CASE("without open streams a quantile is the plain one") {
  Lifetimes lifetimes;
  for (std::int64_t quarters = 1; quarters <= 10; ++quarters)
    lifetimes.ended[duration_bin(Quarters{quarters})] += 10;
  for (std::int64_t tenth = 1; tenth <= 9; ++tenth)
    CHECK(lifetime_quantile(lifetimes, static_cast<double>(tenth) / 10) ==
          LifetimeEstimate{.time = Quarters{tenth}});
  CHECK(lifetime_quantile(lifetimes, 0.99) == LifetimeEstimate{.time = Quarters{10}});
  CHECK(longest_lifetime(lifetimes) == LifetimeEstimate{.time = Quarters{10}});
}

TEST_CASE(
    "the estimator gives what Kaplan and Meier give for eight observations with four losses") {
  // Ended at 8, 31, 54, 92; lost from sight at 10, 27, 70, 121. By hand: the share that is left is
  // 7/8 after 8, 7/8 x 4/5 = 0.7 after 31, x 3/4 = 0.525 after 54, x 1/2 = 0.2625 after 92.
  Lifetimes lifetimes;
  for (const int ended : {8, 31, 54, 92}) ++lifetimes.ended[duration_bin(Quarters{ended})];
  for (const int lost : {10, 27, 70, 121}) ++lifetimes.censored[duration_bin(Quarters{lost})];
  const auto time_of = [](int quarters) { return middle_of(duration_bin(Quarters{quarters})); };
  const auto quantile = [&](double share) { return lifetime_quantile(lifetimes, share).value(); };
  CHECK(quantile(0.125) == LifetimeEstimate{.time = time_of(8)});
  CHECK(quantile(0.126) == LifetimeEstimate{.time = time_of(31)});
  CHECK(quantile(0.300) == LifetimeEstimate{.time = time_of(31)});
  CHECK(quantile(0.301) == LifetimeEstimate{.time = time_of(54)});
  CHECK(quantile(0.475) == LifetimeEstimate{.time = time_of(54)});
  CHECK(quantile(0.476) == LifetimeEstimate{.time = time_of(92)});
  CHECK(quantile(0.737) == LifetimeEstimate{.time = time_of(92)});
  // Who was in sight longest did not end: the curve never comes below 0.2625.
  CHECK(quantile(0.738) == LifetimeEstimate{.time = Quarters{120}, .more = true});
  CHECK(longest_lifetime(lifetimes) == LifetimeEstimate{.time = Quarters{120}, .more = true});
}

TEST_CASE("of nothing there is no quantile, and of open streams alone only a bound") {
  Lifetimes lifetimes;
  CHECK_FALSE(lifetime_quantile(lifetimes, 0.5));
  CHECK_FALSE(longest_lifetime(lifetimes));
  lifetimes.censored[duration_bin(Quarters{12})] = 3;
  CHECK(lifetime_quantile(lifetimes, 0.01) == LifetimeEstimate{.time = Quarters{12}, .more = true});
}

TEST_CASE(
    "the ends of exponential streams alone tell too little, with the open ones it comes right") {
  constexpr double kMean = 600;
  const Seen seen(
      1800, [](auto& random) { return std::exponential_distribution<double>(1 / kMean)(random); },
      1);
  CHECK(seen.naive(0.5) < 0.7 * kMean * std::log(2));
  CHECK(seen.naive(0.99) < 0.55 * kMean * std::log(100));
  check_near(seen.ours(0.5), kMean * std::log(2));
  check_near(seen.ours(0.9), kMean * std::log(10));
}

TEST_CASE(
    "the ends of lognormal streams alone tell too little, with the open ones it comes right") {
  // Half of them last longer than 5 minutes, one in ten longer than 39.
  constexpr double kSigma = 1.6;
  const double mu = std::log(300.0);
  const Seen seen(
      3600, [&](auto& random) { return std::lognormal_distribution<double>(mu, kSigma)(random); },
      2);
  CHECK(seen.naive(0.5) < 0.85 * 300);
  CHECK(seen.naive(0.9) < 0.7 * std::exp(mu + 1.2816 * kSigma));
  check_near(seen.ours(0.5), 300);
  check_near(seen.ours(0.9), std::exp(mu + 1.2816 * kSigma));
}

TEST_CASE(
    "what lasts longer than the window is told as more than what was seen, and that is true") {
  constexpr double kMean = 3600;
  const Seen seen(
      1200, [](auto& random) { return std::exponential_distribution<double>(1 / kMean)(random); },
      3);
  const double median = kMean * std::log(2);
  CHECK(seen.naive(0.5) < 0.25 * median);
  const auto ours = seen.ours(0.5);
  CHECK(ours.more);
  CHECK(ours.time.count() > 1000);
  CHECK(ours.time.count() < median);
  // A tenth of them is over before the window is.
  check_near(seen.ours(0.1), kMean * std::log(1 / 0.9));
}

}  // namespace holdfast

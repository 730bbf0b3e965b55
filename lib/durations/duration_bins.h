// SPDX-License-Identifier: Apache-2.0
// Log-linear bins for durations from nothing to half a year: a histogram of fixed size whose error
// is a fixed share of what it holds. Pure; any thread.
//
// Up to 4 s each quarter of a second has a bin of its own; above that every power of two is cut
// into eight. So the middle of a bin is off by less than 1/16 of any duration in it. (The flow
// table's clock counts quarters of a second, so a duration is itself off by up to a quarter.)
#pragma once

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace holdfast {

/// The flow table's unit of time.
using Quarters = std::chrono::duration<std::int64_t, std::ratio<1, 4>>;

inline constexpr unsigned kDurationBits = 26;  // of a duration in quarters: 194 days
inline constexpr std::size_t kDurationBins = 8 * (kDurationBits - 2);

/// Below 0 counts as 0, beyond the last bin as the last bin.
[[nodiscard]] constexpr std::size_t duration_bin(Quarters duration) {
  constexpr std::int64_t kMost = (std::int64_t{1} << kDurationBits) - 1;
  const auto quarters =
      static_cast<std::uint64_t>(std::clamp<std::int64_t>(duration.count(), 0, kMost));
  if (quarters < 8) return quarters;
  // Shifted by this, the number lies in 8..15.
  const auto shift = static_cast<unsigned>(std::bit_width(quarters)) - 4;
  return 8 * shift + (quarters >> shift);
}

/// The shortest duration of a bin. Requires: bin < kDurationBins.
[[nodiscard]] constexpr Quarters shortest_in(std::size_t bin) {
  if (bin < 16) return Quarters{static_cast<std::int64_t>(bin)};
  return Quarters{static_cast<std::int64_t>((8 + bin % 8) << (bin / 8 - 1))};
}

/// The longest one, which is in it too. Requires: bin < kDurationBins.
[[nodiscard]] constexpr Quarters longest_in(std::size_t bin) {
  const unsigned shift = bin < 16 ? 0 : static_cast<unsigned>(bin / 8 - 1);
  return shortest_in(bin) + Quarters{(std::int64_t{1} << shift) - 1};
}

/// What stands for all of them. Requires: bin < kDurationBins.
[[nodiscard]] constexpr std::chrono::duration<double> middle_of(std::size_t bin) {
  return std::chrono::duration<double>(shortest_in(bin) + longest_in(bin)) / 2;
}

}  // namespace holdfast

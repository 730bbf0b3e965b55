// SPDX-License-Identifier: Apache-2.0
#include "lib/config/faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>

namespace holdfast::config {
namespace {

constexpr std::size_t kMaxFaults = 1000;
constexpr std::size_t kMaxGuessed = 64;    // bytes of a name worth a guess
constexpr std::size_t kMaxGuesses = 1000;  // candidates looked at

/// Levenshtein's distance, with a swap of neighbours as one step: the slip that typing makes most.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        now[j] = std::min(now[j], before_last[j - 2] + 1);
    }
    std::swap(before_last, last);
    std::swap(last, now);
  }
  return last[b.size()];
}

}  // namespace

void Faults::add(Place place, std::string message) {
  if (faults_.size() == kMaxFaults) {
    ++left_out_;
    return;
  }
  faults_.push_back({file_, place.line, place.column, std::move(message)});
}

std::vector<ConfigFault> Faults::take() {
  std::stable_sort(faults_.begin(), faults_.end(), [](const auto& a, const auto& b) {
    return std::tie(a.line, a.column) < std::tie(b.line, b.column);
  });
  if (left_out_ > 0)
    faults_.push_back({file_, 0, 0, fmt::format("{} more faults are not shown", left_out_)});
  return std::move(faults_);
}

std::string_view nearest(std::string_view text, const std::vector<std::string_view>& candidates) {
  if (text.size() > kMaxGuessed || candidates.size() > kMaxGuesses) return {};
  // A third of the letters may be wrong, but not more than three.
  const std::size_t tolerated = std::min<std::size_t>(3, std::max<std::size_t>(1, text.size() / 3));
  std::string_view best;
  std::size_t best_distance = tolerated + 1;
  for (const auto candidate : candidates) {
    if (candidate.empty() || candidate.size() > text.size() + tolerated ||
        text.size() > candidate.size() + tolerated)
      continue;
    const auto distance = edit_distance(text, candidate);
    if (distance < best_distance && distance < candidate.size()) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string suggestion(std::string_view text, const std::vector<std::string_view>& candidates) {
  const auto best = nearest(text, candidates);
  return best.empty() ? std::string{} : fmt::format("; did you mean {}?", in_quotes(best));
}

}  // namespace holdfast::config

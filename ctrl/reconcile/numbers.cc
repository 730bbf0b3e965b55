// SPDX-License-Identifier: Apache-2.0
#include "ctrl/reconcile/numbers.h"

#include <algorithm>

namespace holdfast {

template <class Key, class Number>
std::optional<Number> Numbers<Key, Number>::take(const Key& key) {
  if (const auto it = held_.find(key); it != held_.end()) return it->second;
  std::size_t number = next_;
  if (auto leaving = leaving_.extract(key)) {
    number = index_of(leaving.mapped().number);
  } else if (!free_.empty()) {
    number = free_.extract(free_.begin()).value();
  } else if (next_ < kMaxNumbers) {
    ++next_;
  } else {
    return std::nullopt;
  }
  return held_.emplace(key, static_cast<Number>(number)).first->second;
}

template <class Key, class Number>
std::optional<Number> Numbers<Key, Number>::find(const Key& key) const {
  const auto it = held_.find(key);
  return it == held_.end() ? std::nullopt : std::optional{it->second};
}

template <class Key, class Number>
void Numbers<Key, Number>::retire(const Key& key) {
  if (auto held = held_.extract(key)) leaving_[key] = {.number = held.mapped()};
}

template <class Key, class Number>
void Numbers<Key, Number>::released(std::span<const std::uint64_t> sweeps) {
  for (auto& [key, leaving] : leaving_) {
    if (leaving.published) continue;
    leaving.published = true;
    leaving.sweeps.assign(sweeps.begin(), sweeps.end());
  }
}

template <class Key, class Number>
std::vector<Number> Numbers<Key, Number>::reclaim(std::span<const std::uint64_t> sweeps) {
  std::vector<Number> reclaimed;
  std::erase_if(leaving_, [&](const auto& entry) {
    const Leaving& leaving = entry.second;
    const bool swept =
        leaving.published &&
        std::equal(sweeps.begin(), sweeps.end(), leaving.sweeps.begin(), leaving.sweeps.end(),
                   [](std::uint64_t now, std::uint64_t then) { return now >= then + kSweeps; });
    if (swept) reclaimed.push_back(leaving.number);
    return swept;
  });
  for (const Number number : reclaimed) free_.insert(index_of(number));
  while (!free_.empty() && *free_.rbegin() + 1 == next_) {
    free_.erase(std::prev(free_.end()));
    --next_;
  }
  return reclaimed;
}

template class Numbers<MembershipKey, BackendNumber>;
template class Numbers<std::string, ServiceNumber>;

}  // namespace holdfast

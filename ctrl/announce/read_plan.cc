// SPDX-License-Identifier: Apache-2.0
#include "ctrl/announce/read_plan.h"

namespace holdfast {

void ReadPlan::add(const ReadTarget& target, const IpAddress& vip, Instant when) {
  targets_[target].emplace(when, vip);
}

void ReadPlan::add_after_change(const ReadTarget& target, const IpAddress& vip, Instant now) {
  for (const auto delay : kAfterChange) {
    const Instant when = now + delay;
    add(target, vip, (when + kGrid - Instant{1}) / kGrid * Instant{kGrid});
  }
}

std::optional<ReadPlan::Due> ReadPlan::take_due(bool of_peers, Instant now) {
  auto oldest = targets_.end();
  for (auto it = targets_.begin(); it != targets_.end(); ++it) {
    const auto& [target, reads] = *it;
    if (target.peer.has_value() != of_peers || reads.empty() || reads.begin()->first > now)
      continue;
    if (oldest == targets_.end() || reads.begin()->first < oldest->second.begin()->first)
      oldest = it;
  }
  if (oldest == targets_.end()) return std::nullopt;
  auto& reads = oldest->second;
  std::set<IpAddress> vips;
  while (!reads.empty() && reads.begin()->first <= now) {
    vips.insert(reads.begin()->second);
    reads.erase(reads.begin());
  }
  return Due{oldest->first, {vips.begin(), vips.end()}};
}

Deadline ReadPlan::next(bool of_peers) const {
  Deadline next;
  for (const auto& [target, reads] : targets_) {
    if (target.peer.has_value() == of_peers && !reads.empty())
      next = earlier(next, reads.begin()->first);
  }
  return next;
}

}  // namespace holdfast

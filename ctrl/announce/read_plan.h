// SPDX-License-Identifier: Apache-2.0
// When which VIPs are to be read back from the speaker: from its RIB and from what it sent to each
// peer. Reads of one target that fall due together become one question. Pure; owned by Announcer.
#pragma once

#include <chrono>
#include <compare>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "ctrl/state/deadline.h"
#include "lib/net/address.h"

namespace holdfast {

/// The RIB (no peer), or what was sent to a peer; in one family.
struct ReadTarget {
  std::optional<IpAddress> peer{};
  Family family = Family::ipv4;

  friend auto operator<=>(const ReadTarget&, const ReadTarget&) = default;
};

class ReadPlan {
 public:
  /// After a change: what the speaker made of it, and whether that lasts.
  static constexpr std::chrono::milliseconds kAfterChange[]{std::chrono::milliseconds{200},
                                                            std::chrono::milliseconds{1000},
                                                            std::chrono::milliseconds{3000}};
  /// Times are rounded up to this, so that a thousand changes do not become a thousand questions.
  static constexpr std::chrono::milliseconds kGrid{50};

  void add(const ReadTarget& target, const IpAddress& vip, Instant when);
  void add_after_change(const ReadTarget& target, const IpAddress& vip, Instant now);
  /// The target that waits for longest among those due, RIB or peers', and all its VIPs that are
  /// due; they leave the plan.
  struct Due {
    ReadTarget target{};
    std::vector<IpAddress> vips{};
  };
  [[nodiscard]] std::optional<Due> take_due(bool of_peers, Instant now);
  [[nodiscard]] Deadline next(bool of_peers) const;

  void forget(const ReadTarget& target) { targets_.erase(target); }
  void clear() { targets_.clear(); }

 private:
  std::map<ReadTarget, std::set<std::pair<Instant, IpAddress>>> targets_;
};

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// All that one worker knows about fragments: its own table and the way to those of the others,
// which it reads and never writes. So it does not matter to which workers a NIC gives the fragments
// of a datagram. join_fragments decides with it.
//
// Owner: one worker, for all but what the table says of itself. Not movable: others refer to it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lb/fragment/fragment_table.h"
#include "lib/base/token_bucket.h"

namespace holdfast {

class Fragments {
 public:
  /// At most `most_held` packets are held. `look_rate`: looks into all other workers' tables a
  /// second for fragments that come and whose first one is not known; as many for those that are
  /// held already; and as many for the rest, which are only looked for to find overlaps. Each kind
  /// has its own, so that none of them, however many there are, takes those of another.
  Fragments(unsigned most_held, std::uint32_t look_rate)
      : table_(most_held), looks_(look_rate), reminders_(look_rate), comparisons_(look_rate) {}
  Fragments(const Fragments&) = delete;
  Fragments& operator=(const Fragments&) = delete;

  /// Lets the workers see each other's tables. Call once, before the first of them runs.
  static void connect(std::span<Fragments* const> all);

  using Fragment = FragmentTable::Fragment;
  [[nodiscard]] FragmentFate meet_first(const Fragment& fragment, const DatagramFlow& flow,
                                        Instant now);
  [[nodiscard]] FragmentFate meet_later(const Fragment& fragment, rte_mbuf* packet, Instant now);
  void refuse(const Fragment& first, DropReason reason, Instant now) {
    table_.refuse(first, reason, now);
  }

  /// Call it once a poll while busy(): drops what was held too long, and asks others about what
  /// waits. A bounded part of it each time.
  void tend(Instant now);
  [[nodiscard]] bool busy() const { return table_.busy(); }
  [[nodiscard]] bool has_released() const { return table_.has_released(); }
  [[nodiscard]] std::optional<FragmentTable::Released> take_released() {
    return table_.take_released();
  }
  [[nodiscard]] unsigned held() const { return table_.held(); }

 private:
  // A poll's share: about the time of a burst.
  static constexpr unsigned kExpireAtOnce = 16;
  static constexpr unsigned kAskAtOnce = 32;

  /// What others know, if `budget` allows to look.
  [[nodiscard]] Elsewhere look(const Fragment& fragment, TokenBucket& budget, Instant now) const;

  FragmentTable table_;
  std::vector<const FragmentTable*> others_;
  TokenBucket looks_;
  TokenBucket reminders_;
  TokenBucket comparisons_;
};

}  // namespace holdfast

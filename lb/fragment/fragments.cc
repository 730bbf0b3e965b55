// SPDX-License-Identifier: Apache-2.0
#include "lb/fragment/fragments.h"

namespace holdfast {

void Fragments::connect(std::span<Fragments* const> all) {
  for (Fragments* const from : all)
    for (const Fragments* const to : all)
      if (from != to) from->others_.push_back(&to->table_);
}

FragmentFate Fragments::meet_first(const Fragment& fragment, const DatagramFlow& flow,
                                   Instant now) {
  return table_.meet_first(fragment, flow, look(fragment, comparisons_, now), now);
}

FragmentFate Fragments::meet_later(const Fragment& fragment, rte_mbuf* packet, Instant now) {
  TokenBucket& budget = table_.knows(fragment.datagram, now) ? comparisons_ : looks_;
  return table_.meet_later(fragment, packet, look(fragment, budget, now), now);
}

Elsewhere Fragments::look(const Fragment& fragment, TokenBucket& budget, Instant now) const {
  Elsewhere elsewhere;
  if (others_.empty() || !budget.take(now)) return elsewhere;
  for (const FragmentTable* const other : others_)
    if (const auto view = other->peek(fragment.datagram, now))
      elsewhere.hear(*view, fragment.piece);
  return elsewhere;
}

void Fragments::tend(Instant now) {
  table_.expire(now, kExpireAtOnce);
  if (others_.empty()) return;
  for (unsigned asked = 0; asked < kAskAtOnce; ++asked) {
    const auto datagram = table_.due(now);
    if (!datagram || !reminders_.take(now)) return;
    Elsewhere elsewhere;
    for (const FragmentTable* const other : others_)
      if (const auto view = other->peek(*datagram, now)) elsewhere.hear(*view);
    table_.heard(elsewhere, now);
  }
}

}  // namespace holdfast

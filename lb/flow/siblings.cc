// SPDX-License-Identifier: Apache-2.0
#include "lb/flow/siblings.h"

namespace holdfast {

void Siblings::connect(const std::vector<Siblings*>& all) {
  for (Siblings* const from : all) {
    from->shared_ = all.front()->shared_;
    for (Siblings* const to : all) {
      if (from == to) continue;
      to->inbox_.push_back(std::make_unique<HandoverRing>());
      from->peers_.push_back({.sibling = to, .to_it = to->inbox_.back().get()});
    }
  }
}

std::optional<Siblings::Found> Siblings::find(const FlowHash& hash) const {
  // A flow that went from the table that is looked at last to the one that was looked at first is
  // seen in neither. But whoever copied it counted its message before the other could drop its
  // entry: then look again, some times at most, as in FlowTable::peek().
  for (int attempt = 0; attempt < 4; ++attempt) {
    const std::uint64_t told = shared_->told.load(std::memory_order_acquire);
    for (unsigned i = 0; i < peers_.size(); ++i)
      if (const auto flow = peers_[i].sibling->own_.peek(hash))
        return Found{.flow = *flow, .owner = i};
    if (shared_->told.load(std::memory_order_relaxed) == told) return std::nullopt;
  }
  return std::nullopt;
}

void Siblings::tell(unsigned owner, const Handover& message) {
  const Peer& peer = peers_[owner];
  shared_->told.fetch_add(1, std::memory_order_release);
  if (peer.to_it->push(message)) peer.sibling->mail_.store(true, std::memory_order_release);
}

void Siblings::tell_all(const Handover& message) {
  for (unsigned i = 0; i < peers_.size(); ++i) tell(i, message);
}

void Siblings::read_messages() {
  // Cleared before reading: a message that arrives meanwhile sets it again.
  if (!mail_.load(std::memory_order_relaxed) || !mail_.exchange(false, std::memory_order_acquire))
    return;
  for (const auto& ring : inbox_)
    while (const auto message = ring->pop()) own_.hand_over(message->hash, message->backend);
}

}  // namespace holdfast

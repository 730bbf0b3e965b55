// SPDX-License-Identifier: Apache-2.0
#include "lb/fragment/fragment_table.h"

#include <algorithm>

namespace holdfast {

void Elsewhere::hear(const DatagramView& view) {
  if (view.state <= state) return;
  state = view.state;
  flow = view.flow;
  reason = view.reason;
}

void Elsewhere::hear(const DatagramView& view, const FragmentPiece& piece) {
  hear(view);
  // The number of a complete datagram may be used again.
  if (view.state != DatagramState::complete)
    clash = std::max(clash, clash_with(piece, view.pieces()));
}

FragmentTable::FragmentTable(unsigned most_held)
    : heads_(std::make_unique<std::array<std::atomic<Index>, kHeads>>()),
      records_memory_(std::make_unique<std::array<DatagramRecord, kDatagrams>>()),
      records_(*records_memory_),
      waiting_packets_(kDatagrams),
      state_links_(kDatagrams),
      ask_links_(kDatagrams),
      released_(most_held) {
  for (auto& head : *heads_) head.store(kNone, std::memory_order_relaxed);
  for (Index index = 0; index < kDatagrams; ++index) free_.push_back(state_links_, index);
}

// --- Fragments --------------------------------------------------------------------------------

FragmentFate FragmentTable::meet_first(const Fragment& fragment, const DatagramFlow& flow,
                                       const Elsewhere& elsewhere, Instant now) {
  Index index = find_alive(fragment.datagram, now);
  if (index != kNone && records_[index].state() == DatagramState::complete) {
    // Its number is used again: nothing of the old one is missing.
    drop(index);
    index = kNone;
  }
  if (index == kNone) {
    index = place_for_first(now);
    begin(index, fragment, flow, now);
  }
  DatagramView view = records_[index].read_own();
  if (const auto verdict = judge(index, view, fragment.piece, elsewhere, now)) return *verdict;
  if (!add_piece(index, view, fragment.piece, now)) return FragmentFate::dropped(view.reason);
  if (view.state == DatagramState::waiting) learn(index, view, flow, now);
  return FragmentFate::goes_on(flow);
}

FragmentFate FragmentTable::meet_later(const Fragment& fragment, rte_mbuf* packet,
                                       const Elsewhere& elsewhere, Instant now) {
  Index index = find_alive(fragment.datagram, now);
  if (index == kNone) {
    const bool known = elsewhere.state == DatagramState::known;
    index = known || (can_hold() && fragment.may_wait) ? spare_place(now) : kNone;
    if (index == kNone) return meet_without_place(fragment, elsewhere);
    begin(index, fragment, known ? std::optional(elsewhere.flow) : std::nullopt, now);
  }
  DatagramView view = records_[index].read_own();
  if (const auto verdict = judge(index, view, fragment.piece, elsewhere, now)) return *verdict;
  if (view.state == DatagramState::waiting && elsewhere.state == DatagramState::known)
    learn(index, view, elsewhere.flow, now);
  if (view.state == DatagramState::waiting) return hold(index, view, fragment, packet, now);
  const DatagramFlow flow = view.flow;
  if (!add_piece(index, view, fragment.piece, now)) return FragmentFate::dropped(view.reason);
  return FragmentFate::goes_on(flow);
}

FragmentFate FragmentTable::meet_without_place(const Fragment& fragment,
                                               const Elsewhere& elsewhere) {
  const FragmentReasons reasons = fragment_reasons(fragment.family);
  if (elsewhere.state == DatagramState::refused) return FragmentFate::dropped(elsewhere.reason);
  if (elsewhere.clash != Clash::none) return FragmentFate::dropped(reasons.overlap);
  return elsewhere.state == DatagramState::known ? FragmentFate::goes_on(elsewhere.flow)
                                                 : FragmentFate::dropped(reasons.no_room);
}

FragmentFate FragmentTable::hold(Index index, DatagramView& view, const Fragment& fragment,
                                 rte_mbuf* packet, Instant now) {
  if (!can_hold() || !fragment.may_wait)
    return FragmentFate::dropped(fragment_reasons(view.family).no_room);
  if (!add_piece(index, view, fragment.piece, now)) return FragmentFate::dropped(view.reason);
  Waiting& waiting = waiting_packets_[index];
  waiting.packet[waiting.count++] = packet;
  ++held_;
  return FragmentFate::held();
}

void FragmentTable::refuse(const Fragment& first, DropReason reason, Instant now) {
  Index index = find_alive(first.datagram, now);
  if (index != kNone && records_[index].state() == DatagramState::complete) {
    drop(index);
    index = kNone;
  }
  if (index == kNone) {
    index = place_for_first(now);
    begin(index, first, DatagramFlow{}, now);
  }
  DatagramView view = records_[index].read_own();
  if (view.state != DatagramState::refused) refuse_at(index, view, reason, now);
}

bool FragmentTable::knows(const FlowHash& datagram, Instant now) const {
  const Index index = find(datagram);
  return index != kNone && records_[index].state() != DatagramState::waiting &&
         !is_over(index, now);
}

std::optional<FragmentFate> FragmentTable::judge(Index index, DatagramView& view,
                                                 const FragmentPiece& piece,
                                                 const Elsewhere& elsewhere, Instant now) {
  if (view.state == DatagramState::refused) return FragmentFate::dropped(view.reason);
  const DropReason overlap = fragment_reasons(view.family).overlap;
  // Complete, and so all there: nothing that comes behind can be a part of it.
  if (view.state == DatagramState::complete) return FragmentFate::dropped(overlap);
  if (elsewhere.state == DatagramState::refused) {
    refuse_at(index, view, elsewhere.reason, now);
    return FragmentFate::dropped(elsewhere.reason);
  }
  const Clash clash = std::max(elsewhere.clash, clash_with(piece, view.pieces()));
  if (clash == Clash::none) return std::nullopt;
  if (clash == Clash::overlap)
    refuse_at(index, view, overlap, now);
  else if (view.piece_count == 0)
    drop(index);  // it was begun for this piece
  return FragmentFate::dropped(overlap);
}

bool FragmentTable::add_piece(Index index, DatagramView& view, const FragmentPiece& piece,
                              Instant now) {
  if (view.piece_count == kMaxPieces) {
    refuse_at(index, view, fragment_reasons(view.family).too_many, now);
    return false;
  }
  view.piece[view.piece_count++] = piece;
  if (view.state == DatagramState::known && is_whole(view.pieces()))
    enter(index, view, DatagramState::complete, now);
  else
    records_[index].write(view);
  return true;
}

void FragmentTable::learn(Index index, DatagramView& view, const DatagramFlow& flow, Instant now) {
  view.flow = flow;
  const bool whole = is_whole(view.pieces());
  enter(index, view, whole ? DatagramState::complete : DatagramState::known, now);
  release(index, FragmentFate::goes_on(flow));
}

void FragmentTable::refuse_at(Index index, DatagramView& view, DropReason reason, Instant now) {
  view.reason = reason;
  enter(index, view, DatagramState::refused, now);
  release(index, FragmentFate::dropped(reason));
}

// --- Places -----------------------------------------------------------------------------------

FragmentTable::Index FragmentTable::find(const FlowHash& datagram) const {
  Index index = (*heads_)[head_of(datagram)].load(std::memory_order_relaxed);
  while (index != kNone && !records_[index].is(datagram))
    index = records_[index].next.load(std::memory_order_relaxed);
  return index;
}

FragmentTable::Index FragmentTable::find_alive(const FlowHash& datagram, Instant now) {
  const Index index = find(datagram);
  if (index == kNone || !is_over(index, now)) return index;
  drop(index, reasons_of(index).no_first);
  return kNone;
}

FragmentTable::Index FragmentTable::spare_place(Instant now) {
  if (!free_.empty()) return free_.front();
  if (const Index index = complete_.front(); index != kNone) {
    drop(index);
    return index;
  }
  for (IndexList* const list : {&waiting_, &settled_}) {
    const Index index = list->front();
    if (index == kNone || !is_over(index, now)) continue;
    drop(index, reasons_of(index).no_first);
    return index;
  }
  return kNone;
}

FragmentTable::Index FragmentTable::place_for_first(Instant now) {
  if (const Index index = spare_place(now); index != kNone) return index;
  const Index index = waiting_.empty() ? settled_.front() : waiting_.front();
  drop(index, reasons_of(index).no_room);
  return index;
}

void FragmentTable::begin(Index index, const Fragment& fragment,
                          const std::optional<DatagramFlow>& flow, Instant now) {
  const DatagramState state = flow ? DatagramState::known : DatagramState::waiting;
  free_.remove(state_links_, index);
  list_of(state).push_back(state_links_, index);
  if (state == DatagramState::waiting) {
    // Others were asked a moment ago.
    waiting_packets_[index].ask_at = now + kAskEvery;
    to_ask_.push_back(ask_links_, index);
  }
  records_[index].write({.hash = fragment.datagram,
                         .since = now,
                         .state = state,
                         .family = fragment.family,
                         .flow = flow.value_or(DatagramFlow{})});
  ++used_;
  std::atomic<Index>& head = (*heads_)[head_of(fragment.datagram)];
  records_[index].next.store(head.load(std::memory_order_relaxed), std::memory_order_relaxed);
  head.store(index, std::memory_order_release);
}

void FragmentTable::enter(Index index, DatagramView& view, DatagramState state, Instant now) {
  list_of(view.state).remove(state_links_, index);
  if (view.state == DatagramState::waiting) to_ask_.remove(ask_links_, index);
  list_of(state).push_back(state_links_, index);
  view.state = state;
  view.since = now;
  records_[index].write(view);
}

void FragmentTable::drop(Index index, DropReason reason) {
  DatagramView view = records_[index].read_own();
  std::atomic<Index>* link = &(*heads_)[head_of(view.hash)];
  while (link->load(std::memory_order_relaxed) != index)
    link = &records_[link->load(std::memory_order_relaxed)].next;
  link->store(records_[index].next.load(std::memory_order_relaxed), std::memory_order_release);

  view.piece_count = 0;
  enter(index, view, DatagramState::free, view.since);
  --used_;
  release(index, FragmentFate::dropped(reason));
}

IndexList& FragmentTable::list_of(DatagramState state) {
  switch (state) {
    case DatagramState::free:
      return free_;
    case DatagramState::waiting:
      return waiting_;
    case DatagramState::known:
    case DatagramState::refused:
      return settled_;
    case DatagramState::complete:
      return complete_;
  }
  return free_;
}

// --- Time, other workers, release
// -----------------------------------------------------------------

void FragmentTable::expire(Instant now, unsigned most) {
  for (IndexList* const list : {&waiting_, &settled_, &complete_}) {
    while (most > 0 && !list->empty() && is_over(list->front(), now)) {
      drop(list->front(), reasons_of(list->front()).no_first);
      --most;
    }
  }
}

std::optional<FlowHash> FragmentTable::due(Instant now) const {
  const Index index = to_ask_.front();
  if (index == kNone || waiting_packets_[index].ask_at > now) return std::nullopt;
  return records_[index].read_own().hash;
}

void FragmentTable::heard(const Elsewhere& elsewhere, Instant now) {
  const Index index = to_ask_.front();
  DatagramView view = records_[index].read_own();
  if (elsewhere.state == DatagramState::refused) {
    refuse_at(index, view, elsewhere.reason, now);
  } else if (elsewhere.state == DatagramState::known) {
    learn(index, view, elsewhere.flow, now);
  } else {
    to_ask_.remove(ask_links_, index);
    waiting_packets_[index].ask_at = now + kAskEvery;
    to_ask_.push_back(ask_links_, index);
  }
}

void FragmentTable::release(Index index, const FragmentFate& fate) {
  Waiting& waiting = waiting_packets_[index];
  for (unsigned i = 0; i < waiting.count; ++i) {
    const std::size_t behind = (released_first_ + released_size_) % released_.size();
    released_[behind] = {.packet = waiting.packet[i], .fate = fate};
    ++released_size_;
  }
  waiting.count = 0;
}

std::optional<FragmentTable::Released> FragmentTable::take_released() {
  if (released_size_ == 0) return std::nullopt;
  const Released next = released_[released_first_];
  released_first_ = static_cast<unsigned>((released_first_ + 1) % released_.size());
  --released_size_;
  --held_;
  return next;
}

std::optional<DatagramView> FragmentTable::peek(const FlowHash& datagram, Instant now) const {
  Index index = (*heads_)[head_of(datagram)].load(std::memory_order_acquire);
  for (unsigned walked = 0; index != kNone && walked < kLongestWalk; ++walked) {
    const DatagramRecord& record = records_[index];
    if (const auto view = record.read(datagram)) {
      const bool alive = view->state != DatagramState::free && now - view->since < kLifetime;
      return alive ? view : std::nullopt;
    }
    index = record.next.load(std::memory_order_acquire);
  }
  return std::nullopt;
}

}  // namespace holdfast

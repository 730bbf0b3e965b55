// SPDX-License-Identifier: Apache-2.0
// The datagrams of which one worker saw fragments. A datagram's first fragment teaches which flow
// the others belong to; those that come before it are held, for a bounded time and in bounded room.
// The load balancer does not reassemble: each fragment goes on as it is. So nothing of a datagram
// is kept but the places of its fragments: overlapping ones are refused (RFC 5722).
//
// Owner: one worker. Other workers may peek(). No clock: time is an argument. Packets are tokens
// here: never looked into, never freed; each that was held comes out of take_released() once.
//
// Invariants
//  1. A datagram has at most one place. Any datagram can take any place, and is found by the hash
//     of a secret seed: no choice of addresses and numbers makes it slow or full sooner.
//  2. A first fragment always finds a place. One without its first takes only what nobody needs.
//  3. Nothing is held longer than kLifetime, if expire() is called; and never more than the limit.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lb/fragment/datagram_record.h"
#include "lb/fragment/index_list.h"

struct rte_mbuf;

namespace holdfast {

/// What other workers know of a datagram and of the piece in hand.
struct Elsewhere {
  DatagramState state = DatagramState::free;  // the highest that one of them has; free: nothing
  DatagramFlow flow{};                        // when known
  DropReason reason{};                        // when refused
  Clash clash = Clash::none;                  // with pieces of a datagram that is not complete

  /// One more worker's record of the datagram.
  void hear(const DatagramView& view);
  /// The same while `piece` is in hand.
  void hear(const DatagramView& view, const FragmentPiece& piece);
};

class FragmentTable {
 public:
  static constexpr unsigned kDatagrams = 1024;
  static constexpr unsigned kMaxPieces = DatagramView::kMaxPieces;
  /// In each of its states (waiting, known, complete) a datagram is remembered so long.
  static constexpr std::chrono::seconds kLifetime{1};
  /// How often other workers are asked about a datagram that waits.
  static constexpr std::chrono::milliseconds kAskEvery{1};

  /// At most `most_held` packets are held at once.
  explicit FragmentTable(unsigned most_held);
  FragmentTable(const FragmentTable&) = delete;
  FragmentTable& operator=(const FragmentTable&) = delete;

  // --- Owner only ---------------------------------------------------------------------------

  /// A fragment in hand. `elsewhere`: what is known of it in other tables; of a first fragment only
  /// its clash counts.
  struct Fragment {
    Family family = Family::ipv4;
    FlowHash datagram{};
    FragmentPiece piece{};
    bool may_wait = true;  // false: it takes more room than is counted, and is never held
  };
  /// The one that begins the datagram: goes on, or is dropped.
  [[nodiscard]] FragmentFate meet_first(const Fragment& fragment, const DatagramFlow& flow,
                                        const Elsewhere& elsewhere, Instant now);
  /// Any other one. When held, `packet` is the table's until take_released() gives it back.
  [[nodiscard]] FragmentFate meet_later(const Fragment& fragment, rte_mbuf* packet,
                                        const Elsewhere& elsewhere, Instant now);
  /// The datagram's first fragment is dropped, and the others are to share its fate.
  void refuse(const Fragment& first, DropReason reason, Instant now);
  /// The datagram's flow, or that it has none, is known here.
  [[nodiscard]] bool knows(const FlowHash& datagram, Instant now) const;

  /// Drops what is older than kLifetime: at most `most` datagrams.
  void expire(Instant now, unsigned most);
  /// The next datagram that waits and is due to be asked about. The caller says what it heard by
  /// heard(), and asks for the next one.
  [[nodiscard]] std::optional<FlowHash> due(Instant now) const;
  /// What other workers know of the datagram that due() named.
  void heard(const Elsewhere& elsewhere, Instant now);

  /// A packet that was held and is to go its way now, or to be dropped.
  struct Released {
    rte_mbuf* packet = nullptr;
    FragmentFate fate{};  // never hold
  };
  /// In the order in which they came; nullopt: there is none.
  [[nodiscard]] std::optional<Released> take_released();
  [[nodiscard]] bool has_released() const { return released_size_ != 0; }
  /// Packets that are the table's: held ones and released ones that were not taken yet.
  [[nodiscard]] unsigned held() const { return held_; }
  /// There is something to expire, to ask about or to release.
  [[nodiscard]] bool busy() const { return used_ != 0 || held_ != 0; }

  // --- Any thread ---------------------------------------------------------------------------

  /// The datagram, if it is known here, waits here or was refused. Not always found while the owner
  /// changes it or one that lies near it: ask again.
  [[nodiscard]] std::optional<DatagramView> peek(const FlowHash& datagram, Instant now) const;

 private:
  using Index = IndexList::Index;
  static constexpr Index kNone = IndexList::kNone;
  static constexpr unsigned kHeads = 4096;  // of chains: few are longer than one
  /// No chain is this long; a reader that follows one while it changes may walk in circles.
  static constexpr unsigned kLongestWalk = 64;

  /// What the owner alone needs of a datagram.
  struct Waiting {
    std::array<rte_mbuf*, kMaxPieces> packet{};  // in the order in which they came
    unsigned count = 0;
    Instant ask_at{0};
  };

  [[nodiscard]] static unsigned head_of(const FlowHash& datagram) {
    return static_cast<unsigned>(datagram.low64 % kHeads);
  }
  [[nodiscard]] Index find(const FlowHash& datagram) const;
  [[nodiscard]] bool is_over(Index index, Instant now) const {
    return now - records_[index].since() >= kLifetime;
  }
  /// find(), but for a datagram whose time is over, which is dropped.
  [[nodiscard]] Index find_alive(const FlowHash& datagram, Instant now);
  /// A place that nobody needs: kNone: there is none.
  [[nodiscard]] Index spare_place(Instant now);
  [[nodiscard]] Index place_for_first(Instant now);
  /// Begins a datagram at a free place: it waits, or its flow is known.
  void begin(Index index, const Fragment& fragment, const std::optional<DatagramFlow>& flow,
             Instant now);
  /// Puts `view`, which was read from there, into another state.
  void enter(Index index, DatagramView& view, DatagramState state, Instant now);
  void refuse_at(Index index, DatagramView& view, DropReason reason, Instant now);
  /// A piece that clashes with nothing comes to the datagram. False: it has too many, and all of it
  /// is refused.
  [[nodiscard]] bool add_piece(Index index, DatagramView& view, const FragmentPiece& piece,
                               Instant now);
  void learn(Index index, DatagramView& view, const DatagramFlow& flow, Instant now);
  /// What the clash of a piece with those at `index` and elsewhere means: its drop, or nothing.
  [[nodiscard]] std::optional<FragmentFate> judge(Index index, DatagramView& view,
                                                  const FragmentPiece& piece,
                                                  const Elsewhere& elsewhere, Instant now);
  /// Frees the place. What it holds, if anything, is dropped for `reason`.
  void drop(Index index, DropReason reason = {});
  void release(Index index, const FragmentFate& fate);
  [[nodiscard]] bool can_hold() const { return held_ < released_.size(); }
  [[nodiscard]] static FragmentFate meet_without_place(const Fragment& fragment,
                                                       const Elsewhere& elsewhere);
  [[nodiscard]] FragmentFate hold(Index index, DatagramView& view, const Fragment& fragment,
                                  rte_mbuf* packet, Instant now);
  [[nodiscard]] IndexList& list_of(DatagramState state);
  [[nodiscard]] FragmentReasons reasons_of(Index index) const {
    return fragment_reasons(records_[index].read_own().family);
  }

  std::unique_ptr<std::array<std::atomic<Index>, kHeads>> heads_;  // other workers read
  std::unique_ptr<std::array<DatagramRecord, kDatagrams>> records_memory_;
  std::array<DatagramRecord, kDatagrams>& records_;  // other workers read
  std::vector<Waiting> waiting_packets_;

  // Each used place is in the list of its state, in the order in which it got there.
  IndexList::Links state_links_;
  IndexList free_{};
  IndexList waiting_{};
  IndexList settled_{};  // known or refused
  IndexList complete_{};
  // Those that wait, in the order in which they are to be asked about.
  IndexList::Links ask_links_;
  IndexList to_ask_{};

  std::vector<Released> released_;  // a ring: as many as can be held
  unsigned released_first_ = 0;
  unsigned released_size_ = 0;
  unsigned held_ = 0;
  unsigned used_ = 0;  // places that are not free
};

}  // namespace holdfast

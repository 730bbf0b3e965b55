// SPDX-License-Identifier: Apache-2.0
// The fragment table against a model that does the same with plain maps and scans, over random
// fragments of many datagrams, in a table that is full most of the time.
#include <algorithm>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "tests/catch.h"
#include "tests/unit/fragment_fixture.h"

namespace holdfast {
namespace {

constexpr unsigned kMostHeld = 900;

using Release = std::pair<rte_mbuf*, FragmentFate>;

/// What a fragment table has to do, without a thought for time and room.
class Model {
 public:
  FragmentFate meet_first(std::uint64_t number, FragmentPiece piece, Instant now) {
    forget_if_over(number, now);
    if (has(number) && all_.at(number).state == DatagramState::complete) all_.erase(number);
    if (!has(number)) {
      make_room_for_first(now);
      all_[number] = {.state = DatagramState::known, .since = now, .order = ++orders_};
    }
    Entry& entry = all_.at(number);
    if (const auto drop = judge(entry, piece, now)) return *drop;
    if (!add(entry, piece, now)) return FragmentFate::dropped(entry.reason);
    if (entry.state == DatagramState::waiting) {
      enter(entry, whole(entry) ? DatagramState::complete : DatagramState::known, now);
      release(entry, FragmentFate::goes_on(kFlow));
    }
    return FragmentFate::goes_on(kFlow);
  }

  FragmentFate meet_later(std::uint64_t number, FragmentPiece piece, rte_mbuf* packet,
                          Instant now) {
    forget_if_over(number, now);
    if (!has(number)) {
      if (held() == kMostHeld || !make_room(now)) return FragmentFate::dropped(kV4.no_room);
      all_[number] = {.state = DatagramState::waiting, .since = now, .order = ++orders_};
    }
    Entry& entry = all_.at(number);
    if (const auto drop = judge(entry, piece, now)) return *drop;
    if (entry.state == DatagramState::known) {
      if (!add(entry, piece, now)) return FragmentFate::dropped(entry.reason);
      return FragmentFate::goes_on(kFlow);
    }
    if (held() == kMostHeld) return FragmentFate::dropped(kV4.no_room);
    if (!add(entry, piece, now)) return FragmentFate::dropped(entry.reason);
    entry.packets.push_back(packet);
    return FragmentFate::held();
  }

  void expire(Instant now) {
    for (const auto& states : {std::vector{DatagramState::waiting},
                               std::vector{DatagramState::known, DatagramState::refused},
                               std::vector{DatagramState::complete}}) {
      for (auto oldest = oldest_of(states); oldest != all_.end(); oldest = oldest_of(states)) {
        if (now - oldest->second.since < FragmentTable::kLifetime) break;
        remove(oldest->first, kV4.no_first);
      }
    }
  }

  [[nodiscard]] std::size_t held() const {
    std::size_t sum = released.size();
    for (const auto& [number, entry] : all_) sum += entry.packets.size();
    return sum;
  }

  std::vector<Release> released{};

 private:
  struct Entry {
    DatagramState state{};
    Instant since{0};
    std::uint64_t order = 0;  // in which it got into its state
    DropReason reason{};
    std::vector<FragmentPiece> pieces{};
    std::vector<rte_mbuf*> packets{};
  };
  using Entries = std::map<std::uint64_t, Entry>;

  [[nodiscard]] bool has(std::uint64_t number) const { return all_.contains(number); }
  void forget_if_over(std::uint64_t number, Instant now) {
    if (has(number) && now - all_.at(number).since >= FragmentTable::kLifetime)
      remove(number, kV4.no_first);
  }
  Entries::iterator oldest_of(const std::vector<DatagramState>& states) {
    auto oldest = all_.end();
    for (auto entry = all_.begin(); entry != all_.end(); ++entry) {
      if (std::ranges::count(states, entry->second.state) == 0) continue;
      if (oldest == all_.end() || entry->second.order < oldest->second.order) oldest = entry;
    }
    return oldest;
  }
  bool make_room(Instant now) {
    if (all_.size() < FragmentTable::kDatagrams) return true;
    if (const auto complete = oldest_of({DatagramState::complete}); complete != all_.end()) {
      all_.erase(complete);
      return true;
    }
    for (const auto& states : {std::vector{DatagramState::waiting},
                               std::vector{DatagramState::known, DatagramState::refused}}) {
      const auto oldest = oldest_of(states);
      if (oldest == all_.end() || now - oldest->second.since < FragmentTable::kLifetime) continue;
      remove(oldest->first, kV4.no_first);
      return true;
    }
    return false;
  }
  void make_room_for_first(Instant now) {
    if (make_room(now)) return;
    auto oldest = oldest_of({DatagramState::waiting});
    if (oldest == all_.end()) oldest = oldest_of({DatagramState::known, DatagramState::refused});
    remove(oldest->first, kV4.no_room);
  }
  void remove(std::uint64_t number, DropReason reason) {
    release(all_.at(number), FragmentFate::dropped(reason));
    all_.erase(number);
  }
  void release(Entry& entry, const FragmentFate& fate) {
    for (rte_mbuf* const packet : entry.packets) released.emplace_back(packet, fate);
    entry.packets.clear();
  }
  void enter(Entry& entry, DatagramState state, Instant now) {
    entry.state = state;
    entry.since = now;
    entry.order = ++orders_;
  }
  void refuse(Entry& entry, DropReason reason, Instant now) {
    entry.reason = reason;
    enter(entry, DatagramState::refused, now);
    release(entry, FragmentFate::dropped(reason));
  }
  /// Byte by byte, unlike the table.
  static Clash clash(const FragmentPiece& a, const FragmentPiece& b) {
    if (a.start == b.start && a.end == b.end && a.last == b.last) return Clash::duplicate;
    for (unsigned byte = a.start; byte < a.end; ++byte)
      if ((byte >= b.start && byte < b.end) || (b.last && byte >= b.end)) return Clash::overlap;
    return a.last && b.end > a.end ? Clash::overlap : Clash::none;
  }
  std::optional<FragmentFate> judge(Entry& entry, FragmentPiece piece, Instant now) {
    if (entry.state == DatagramState::refused) return FragmentFate::dropped(entry.reason);
    if (entry.state == DatagramState::complete) return FragmentFate::dropped(kV4.overlap);
    Clash worst = Clash::none;
    for (const FragmentPiece& other : entry.pieces) worst = std::max(worst, clash(piece, other));
    if (worst == Clash::none) return std::nullopt;
    if (worst == Clash::overlap) refuse(entry, kV4.overlap, now);
    return FragmentFate::dropped(kV4.overlap);
  }
  static bool whole(const Entry& entry) {
    std::vector<FragmentPiece> sorted = entry.pieces;
    std::ranges::sort(sorted, {}, &FragmentPiece::start);
    unsigned reached = 0;
    for (const FragmentPiece& piece : sorted) {
      if (piece.start != reached) return false;
      reached = piece.end;
      if (piece.last) return true;
    }
    return false;
  }
  bool add(Entry& entry, FragmentPiece piece, Instant now) {
    if (entry.pieces.size() == FragmentTable::kMaxPieces) {
      refuse(entry, kV4.too_many, now);
      return false;
    }
    entry.pieces.push_back(piece);
    if (entry.state == DatagramState::known && whole(entry))
      enter(entry, DatagramState::complete, now);
    return true;
  }

  Entries all_{};
  std::uint64_t orders_ = 0;
};

struct Tally {
  std::map<DropReason, std::uint64_t> dropped{};
  std::uint64_t held = 0;
  std::uint64_t went_on = 0;
  std::uint64_t released = 0;

  void add(const FragmentFate& fate) {
    held += fate.what == FragmentFate::What::hold;
    went_on += fate.what == FragmentFate::What::go_on;
    if (fate.what == FragmentFate::What::drop) ++dropped[fate.reason];
  }
};

/// One of the fragments of datagram `number`, sometimes one that fits none of them. Every second
/// datagram has 18, the others three, so that they become complete.
FragmentPiece random_piece(std::mt19937& random, std::uint64_t number) {
  const unsigned count = number % 2 == 0 ? 18 : 3;
  const auto which = static_cast<unsigned>(random() % count);
  auto piece = holdfast::piece(static_cast<std::uint16_t>(which * 800), which + 1 == count);
  if (random() % 100 == 0) piece.end = static_cast<std::uint16_t>(piece.end + 8);
  if (random() % 100 == 0) piece.last = !piece.last;
  return piece;
}

}  // namespace

namespace {

struct Scene {
  std::uint64_t datagrams;             // at a time
  std::chrono::microseconds pause{0};  // at most, between two fragments
};

void compare_with_model(const Scene& scene, Tally& tally) {
  std::mt19937 random(20261130);
  FragmentTable table{kMostHeld};
  Model model;
  Instant now = 1h;
  for (std::uintptr_t i = 0; i < 20'000; ++i) {
    CAPTURE(scene.datagrams, i);
    const std::uint64_t number = random() % scene.datagrams;
    const FragmentPiece piece = random_piece(random, number);
    const bool first = piece.start == 0;
    const auto fate = first ? table.meet_first(fragment(number, piece), kFlow, {}, now)
                            : table.meet_later(fragment(number, piece), token(i), {}, now);
    const auto expected = first ? model.meet_first(number, piece, now)
                                : model.meet_later(number, piece, token(i), now);
    REQUIRE(fate == expected);
    tally.add(fate);
    now += std::chrono::nanoseconds(random() % 1000) * scene.pause.count();
    if (random() % 8 == 0) {
      table.expire(now, FragmentTable::kDatagrams);
      model.expire(now);
    }
    REQUIRE(table.held() == model.held());
    std::vector<Release> released;
    while (const auto next = table.take_released()) released.emplace_back(next->packet, next->fate);
    REQUIRE(released == std::exchange(model.released, {}));
    for (const auto& [packet, its_fate] : released) {
      ++tally.released;
      tally.add(its_fate);
    }
  }
  now += 2s;
  table.expire(now, FragmentTable::kDatagrams);
  while (table.take_released()) ++tally.released;
  CHECK(tally.released == tally.held);
  CHECK(table.held() == 0);
  CHECK_FALSE(table.busy());
}

}  // namespace

TEST_CASE("a fragment table does what its model does") {
  Tally tally;
  // Too few datagrams to fill the table, about as many, far more.
  for (const Scene& scene : {Scene{20, 100us}, Scene{300, 2ms}, Scene{1200, 400us},
                             Scene{3000, 4ms}, Scene{3000, 200us}, Scene{10'000, 50us}})
    compare_with_model(scene, tally);
  CHECK(tally.went_on > 10'000);
  CHECK(tally.held > 5000);
  for (const DropReason reason : {kV4.overlap, kV4.too_many, kV4.no_first, kV4.no_room})
    CHECK(tally.dropped[reason] > 100);
}

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// The flow table of one worker: flow -> backend, in fixed memory. Share nothing: the worker that
// owns it is the only one that writes; other workers may peek, and any thread may read the
// counters.
//
// Layout. Buckets of four 16-byte entries, one cache line each. A flow has two candidate buckets by
// placement version 1 (lib/flow/flow_key.h): first = (b x buckets) >> 44, second = (h(tag) - first)
// mod buckets; the same formula leads back, so an entry can move to its other bucket although it
// knows only its tag. Any number of buckets works. A newcomer prefers its first bucket; when both
// are full, entries are moved to their other buckets in at most two steps to make room.
//
// Invariants
//  1. A flow has at most one entry, in one of its two buckets (twice for a moment while it moves).
//  2. `counts` and the table's own gauges change in the same call as the entry: they are exact.
//  3. Memory, buckets and entries never grow, and no call does more than a bounded amount of work.
//  4. Each word is written as one 64-bit atomic, word 1 first, then word 0 with release; a state
//     change of word 1 alone (last seen) is relaxed.
//  5. Another worker reads word 0 only. What it sees there is whole: tag, backend and life belong
//     together. A flow that moves while it is looked for may be seen in neither place; then the
//     owner's move counter has changed, and the reader looks again. Who only informs people may
//     read both words, which need not belong together: see read().
//
// Wrong backend. Two flows are taken for one another only if they meet in a bucket and have the
// same 42-bit tag. The bits that choose the first bucket are others than the tag's, so whatever
// lies in the two buckets of a flow has its tag with probability 2^-42 each. One lookup in one
// table compares at most 2 x 4 entries, so for a flow that is not in it, if it is full: 8 / 2^42 =
// 1.8e-12. A lookup may visit the own table and then those of all other workers. Summed over 64
// workers, all full: 64 x 8 / 2^42 = 1.2e-10; over 128, the most that can be configured: 2.3e-10.
// All are below 1e-9. tests/unit/flow_tag_test.cc shows the formula with shorter tags.
#pragma once

#include <rte_prefetch.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <optional>

#include "lb/flow/flow_buckets.h"
#include "lb/flow/flow_counts.h"
#include "lb/flow/flow_entry.h"
#include "lb/flow/table_memory.h"
#include "lib/base/counter.h"
#include "lib/flow/flow_key.h"
#include "lib/model/snapshot.h"
#include "lib/model/stats.h"

namespace holdfast {

/// What a flow table counts of itself. The owner writes, any thread reads.
struct alignas(64) FlowTableEvents {
  Counter embryonic;
  Counter established;
  Counter closing;
  Counter inserted;
  Counter expired;
  Counter evicted_embryonic;
  Counter evicted_stale;
  Counter gone;
  Counter handed_over;
  Counter not_recorded;
  Counter sweeps;
};

class FlowTable {
 public:
  static constexpr unsigned kWays = 4;

  /// An entry's index. Valid until the next insert or sweep.
  enum class Place : std::uint64_t {};
  static constexpr Place kNowhere{~std::uint64_t{0}};

  using Buckets = FlowBuckets;

  /// What another worker may know of an entry.
  struct Sighting {
    BackendNumber backend = kNoBackend;
    FlowLife life{};
  };

  /// More than any machine has memory for; bucket numbers fit into 32 bits.
  static constexpr std::uint64_t kMaxCapacity = std::uint64_t{1} << 33;

  /// Room for `capacity` entries, at most kMaxCapacity, rounded up to whole buckets, at least 1.
  /// `counts` must outlive the table. Throws std::runtime_error when there is no memory for it.
  FlowTable(std::uint64_t capacity, int numa_node, FlowCounts& counts);
  FlowTable(const FlowTable&) = delete;
  FlowTable& operator=(const FlowTable&) = delete;

  // --- Owner only ---------------------------------------------------------------------------

  /// The flow's two buckets.
  [[nodiscard]] Buckets buckets_of(const FlowHash& hash) const {
    const std::uint64_t first = scale(flow_bucket_bits(hash) << 20);
    return {static_cast<std::uint32_t>(first),
            static_cast<std::uint32_t>(other_bucket(first, flow_tag(hash)))};
  }
  /// Brings both buckets into the cache. Call it some packets ahead of find().
  void prefetch(const Buckets& buckets) const {
    // Not __builtin_prefetch: g++ 12 takes a function that does nothing else for one without
    // effect, and leaves out its calls.
    rte_prefetch0(word_of(buckets.first, 0));
    rte_prefetch0(word_of(buckets.second, 0));
  }
  void prefetch(const FlowHash& hash) const { prefetch(buckets_of(hash)); }
  /// The flow's entry, expired or not, or kNowhere.
  [[nodiscard]] Place find(const FlowHash& hash) const { return find(buckets_of(hash), hash); }
  /// The same for who has its buckets already.
  [[nodiscard]] Place find(const Buckets& buckets, const FlowHash& hash) const {
    // All eight are compared without a branch: which of them it is can not be predicted.
    const std::uint64_t first = buckets.first * std::uint64_t{kWays};
    const std::uint64_t second = buckets.second * std::uint64_t{kWays};
    std::uint64_t index = first;
#pragma GCC unroll 4
    for (unsigned way = 1; way < kWays; ++way)
      index = has_tag(first + way, hash) ? first + way : index;
#pragma GCC unroll 4
    for (unsigned way = 0; way < kWays; ++way)
      index = has_tag(second + way, hash) ? second + way : index;
    const Place place{index};
    const std::uint64_t tag = flow_tag(hash);
    if (FlowEntry{.word0 = relaxed(words_of(place))}.is_flow(tag)) [[likely]]
      return place;
    // A free place looks like a flow whose tag is 0.
    return tag == 0 ? find_zero(buckets) : kNowhere;
  }
  [[nodiscard]] FlowEntry at(Place place) const {
    std::uint64_t* const words = words_of(place);
    return {.word0 = relaxed(words), .word1 = relaxed(words + 1)};
  }
  /// Nothing about the flow at `place` changes but the time of its last packet.
  void touch(Place place, const FlowEntry& entry, FlowTime now) {
    FlowEntry seen = entry;
    seen.set_last_seen(now);
    if (seen.word1 != entry.word1)
      Word(words_of(place)[1]).store(seen.word1, std::memory_order_relaxed);
  }
  /// Replaces the entry at `place`, which is `before`, by `after`: same flow, so the same tag.
  void update(Place place, const FlowEntry& before, const FlowEntry& after) {
    if (after.word0 != before.word0 || after.service() != before.service())
      replace(place, before, after);
    else if (after.word1 != before.word1)
      Word(words_of(place)[1]).store(after.word1, std::memory_order_relaxed);
  }
  /// Records a flow that find() did not find, by the newcomer's rule: a free or expired place, if
  /// need be after relocation; else the oldest embryonic, else the oldest stale entry's; else, if
  /// many are embryonic, such a one's that an entry of its two buckets can move to; never
  /// another's. At a limit of its service: only an expired or an embryonic one of that service.
  /// False: there was no such place; counted not_recorded.
  [[nodiscard]] bool insert(const FlowHash& hash, const FlowEntry& fresh, const Snapshot& snapshot,
                            FlowTime now);
  /// Frees an entry whose time is over.
  void expire(Place place) { erase(place, events_.expired); }
  /// Frees an entry whose backend no longer keeps it.
  void drop_gone(Place place) { erase(place, events_.gone); }
  /// Frees the flow's entry if it is still on `backend`: another worker has a copy.
  void hand_over(const FlowHash& hash, BackendNumber backend);

  /// Looks at the next `entries` entries (whole buckets, at most one pass over the table): drops
  /// those that expired or whose backend or service is gone from `snapshot`.
  void sweep(const Snapshot& snapshot, FlowTime now, std::uint64_t entries);

  // --- Any thread ---------------------------------------------------------------------------

  /// The flow's entry as another worker may see it. An expired one that was not swept yet is seen.
  [[nodiscard]] std::optional<Sighting> peek(const FlowHash& hash) const;
  /// The entry at an index below capacity(), for information only: no decision about a packet may
  /// rest on it. Word 0 is whole and did not change while word 1 was read (after some tries in vain
  /// the place counts as free). All the same service and times may not be the ones that belong to
  /// it: the owner writes word 1 first, so they may be newer, or, where the owner lays one flow
  /// over another, those of the flow that is about to come.
  [[nodiscard]] FlowEntry read(std::uint64_t index) const;
  [[nodiscard]] std::uint64_t capacity() const { return buckets_ * kWays; }
  /// Fills in what the table itself counts.
  void read_into(FlowTableCounters& counters) const;
  [[nodiscard]] std::string memory_description() const { return memory_->description(); }

 private:
  using Word = std::atomic_ref<std::uint64_t>;
  static_assert(Word::is_always_lock_free);

  /// The one that was idle longest of those considered.
  struct Weakest {
    Place place = kNowhere;
    FlowTime idle{-1};
    void consider(Place candidate, FlowTime its_idle) {
      if (its_idle > idle) *this = {candidate, its_idle};
    }
  };
  struct Neighbour {
    Place entry;          // of one of a newcomer's buckets
    std::uint64_t other;  // where it could go
  };
  struct Neighbours {
    std::array<Neighbour, 2 * kWays> list{};
    unsigned count = 0;
  };

  /// A 64-bit number, taken as a fraction, times the number of buckets.
  [[nodiscard]] std::uint64_t scale(std::uint64_t fraction) const {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>(Wide{fraction} * buckets_ >> 64);
  }
  [[nodiscard]] std::uint64_t other_bucket(std::uint64_t bucket, std::uint64_t tag) const {
    // h(tag): the golden ratio's bits spread the tag's low bits over the high ones.
    const std::uint64_t sum = scale(tag * 0x9e3779b97f4a7c15u);
    return sum >= bucket ? sum - bucket : sum + buckets_ - bucket;
  }
  /// Where the entry there could move.
  [[nodiscard]] std::uint64_t other_of(std::uint64_t bucket, unsigned way) const {
    return other_bucket(bucket, FlowEntry{.word0 = relaxed(word_of(bucket, way))}.tag());
  }
  void prefetch_others_of(std::uint64_t bucket) const {
    for (unsigned way = 0; way < kWays; ++way) rte_prefetch0(word_of(other_of(bucket, way), 0));
  }
  [[nodiscard]] std::uint64_t* word_of(std::uint64_t bucket, unsigned way) const {
    return words_ + (bucket * kWays + way) * 2;
  }
  [[nodiscard]] static Place place_of(std::uint64_t bucket, unsigned way) {
    return static_cast<Place>(bucket * kWays + way);
  }

  [[nodiscard]] std::uint64_t* words_of(Place place) const {
    return words_ + static_cast<std::uint64_t>(place) * 2;
  }
  [[nodiscard]] static std::uint64_t relaxed(std::uint64_t* word) {
    return Word(*word).load(std::memory_order_relaxed);
  }
  /// Of the entry at `index`; a free one has tag 0.
  [[nodiscard]] bool has_tag(std::uint64_t index, const FlowHash& hash) const {
    constexpr std::uint64_t kBelowTag = (std::uint64_t{1} << FlowEntry::kTagShift) - 1;
    return (relaxed(words_ + 2 * index) ^ hash.high64) <= kBelowTag;
  }
  /// find() for tag 0.
  [[nodiscard]] Place find_zero(const Buckets& buckets) const {
    for (const std::uint64_t bucket : {buckets.first, buckets.second})
      for (unsigned way = 0; way < kWays; ++way)
        if (FlowEntry{.word0 = relaxed(word_of(bucket, way))}.is_flow(0))
          return place_of(bucket, way);
    return kNowhere;
  }
  /// update() for more than a new last seen.
  void replace(Place place, const FlowEntry& before, const FlowEntry& after);
  void store(Place place, const FlowEntry& entry);
  void erase(Place place, Counter& why);
  [[nodiscard]] Counter& gauge(FlowLife life);
  /// Null: the entry is alive. Else the counter of the way in which it leaves.
  [[nodiscard]] Counter* death_of(const FlowEntry& entry, const Snapshot& snapshot, FlowTime now);
  /// A place of `bucket` that is free now, a dead entry's included.
  [[nodiscard]] Place vacancy(std::uint64_t bucket, const Snapshot& snapshot, FlowTime now);
  [[nodiscard]] bool at_limit(const FlowEntry& fresh, const Service& service) const;
  [[nodiscard]] Place room_within_service(const Buckets& buckets, ServiceNumber service,
                                          const Snapshot& snapshot, FlowTime now);
  /// A free place of `bucket`, a dead entry's included. Where there is none, the entries that a
  /// newcomer may displace are considered.
  [[nodiscard]] Place look_through(std::uint64_t bucket, const Snapshot& snapshot, FlowTime now,
                                   Weakest& embryonic, Weakest& stale);
  [[nodiscard]] Place room(const Buckets& buckets, const Snapshot& snapshot, FlowTime now);
  [[nodiscard]] Neighbours neighbours_of(const Buckets& buckets) const;
  [[nodiscard]] Place room_by_relocation(const Buckets& buckets, const Snapshot& snapshot,
                                         FlowTime now);
  /// Of `bucket`, and of service `only` unless that is kNoService.
  [[nodiscard]] Place oldest_embryonic(std::uint64_t bucket, ServiceNumber only,
                                       FlowTime now) const;
  /// An entry of our buckets takes the place of an embryonic one (of service `only`, unless that is
  /// kNoService) in its other bucket. While a flood fills the table, real clients find a place even
  /// where both of their buckets are full of flows that carry data.
  [[nodiscard]] Place room_by_displacing(const Buckets& buckets, ServiceNumber only, FlowTime now);
  /// Copies the entry at `from` to the free place `to`. `from` is to be overwritten next.
  void move(Place from, Place to);

  std::unique_ptr<TableMemory> memory_;
  std::uint64_t* words_;
  std::uint64_t buckets_;
  FlowCounts& counts_;
  std::uint64_t used_ = 0;          // entries that are not free
  std::uint64_t sweep_bucket_ = 0;  // the next one to look at
  FlowTableEvents events_{};
  alignas(64) std::atomic<std::uint64_t> moves_{0};  // owner writes, other workers read
};

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
#include "lb/flow/flow_table.h"

#include <algorithm>

#include "lb/flow/flow_life.h"

namespace holdfast {

FlowTable::FlowTable(std::uint64_t capacity, int numa_node, FlowCounts& counts)
    : buckets_(std::max<std::uint64_t>(1, (capacity + kWays - 1) / kWays)), counts_(counts) {
  memory_ = map_table_memory(buckets_ * kWays * sizeof(FlowEntry), numa_node);
  words_ = reinterpret_cast<std::uint64_t*>(memory_->bytes().data());
}

void FlowTable::store(Place place, const FlowEntry& entry) {
  std::uint64_t* const words = words_ + static_cast<std::uint64_t>(place) * 2;
  Word(words[1]).store(entry.word1, std::memory_order_relaxed);
  Word(words[0]).store(entry.word0, std::memory_order_release);
}

void FlowTable::replace(Place place, const FlowEntry& before, const FlowEntry& after) {
  store(place, after);
  gauge(before.life()).add(~std::uint64_t{0});
  gauge(after.life()).add();
  counts_.leave(before);
  counts_.enter(after);
  // Placed anew, or a SYN on a closing entry: another connection, in the same place.
  if (!was_established(after.life())) counts_.streams.leave(before, false);
}

bool FlowTable::insert(const FlowHash& hash, const FlowEntry& fresh, const Snapshot& snapshot,
                       FlowTime now) {
  const Buckets buckets = buckets_of(hash);
  const Service* const service = snapshot.service(fresh.service());
  const bool limited = service != nullptr && at_limit(fresh, *service);
  const Place place = limited ? room_within_service(buckets, fresh.service(), snapshot, now)
                              : room(buckets, snapshot, now);
  if (place == kNowhere) {
    events_.not_recorded.add();
    return false;
  }
  store(place, fresh);
  ++used_;
  events_.inserted.add();
  gauge(fresh.life()).add();
  counts_.enter(fresh);
  return true;
}

void FlowTable::hand_over(const FlowHash& hash, BackendNumber backend) {
  const Place place = find(hash);
  if (place != kNowhere && at(place).backend() == backend) erase(place, events_.handed_over);
}

void FlowTable::sweep(const Snapshot& snapshot, FlowTime now, std::uint64_t entries) {
  const std::uint64_t steps = std::min(buckets_, (entries + kWays - 1) / kWays);
  for (std::uint64_t step = 0; step < steps; ++step) {
    for (unsigned way = 0; way < kWays; ++way) {
      const Place place = place_of(sweep_bucket_, way);
      const FlowEntry entry = at(place);
      if (entry.is_free()) continue;
      if (Counter* const why = death_of(entry, snapshot, now); why != nullptr) {
        erase(place, *why);
      } else if (entry.age(now) > FlowEntry::kOldest) {
        FlowEntry older = entry;
        older.set_first_seen(now - FlowEntry::kOldest);
        update(place, entry, older);
      }
    }
    if (++sweep_bucket_ == buckets_) {
      sweep_bucket_ = 0;
      events_.sweeps.add();
    }
  }
}

std::optional<FlowTable::Sighting> FlowTable::peek(const FlowHash& hash) const {
  const Buckets buckets = buckets_of(hash);
  const std::uint64_t tag = flow_tag(hash);
  // An entry that moved between our two looks is in its other bucket now; a few more looks are
  // enough unless the owner does nothing but move entries, and then Maglev is the answer.
  for (int attempt = 0; attempt < 4; ++attempt) {
    const std::uint64_t moves = moves_.load(std::memory_order_acquire);
    for (const std::uint64_t bucket : {buckets.first, buckets.second}) {
      for (unsigned way = 0; way < kWays; ++way) {
        // Acquire: who sees what overwrote a moved entry also sees the move counter change.
        const FlowEntry entry{.word0 = Word(*word_of(bucket, way)).load(std::memory_order_acquire)};
        if (entry.is_flow(tag)) return Sighting{.backend = entry.backend(), .life = entry.life()};
      }
    }
    if (moves_.load(std::memory_order_relaxed) == moves) return std::nullopt;
  }
  return std::nullopt;
}

FlowEntry FlowTable::read(std::uint64_t index) const {
  std::uint64_t* const words = words_of(static_cast<Place>(index));
  for (int attempt = 0; attempt < 4; ++attempt) {
    const std::uint64_t word0 = Word(words[0]).load(std::memory_order_acquire);
    if (FlowEntry{.word0 = word0}.is_free()) return {};
    // Acquire: the second look at word 0 comes after it.
    const std::uint64_t word1 = Word(words[1]).load(std::memory_order_acquire);
    if (relaxed(words) == word0) return {.word0 = word0, .word1 = word1};
  }
  return {};
}

void FlowTable::read_into(FlowTableCounters& counters) const {
  counters.capacity = capacity();
  counters.embryonic = events_.embryonic.read();
  counters.established = events_.established.read();
  counters.closing = events_.closing.read();
  counters.inserted = events_.inserted.read();
  counters.expired = events_.expired.read();
  counters.evicted_embryonic = events_.evicted_embryonic.read();
  counters.evicted_stale = events_.evicted_stale.read();
  counters.gone = events_.gone.read();
  counters.handed_over = events_.handed_over.read();
  counters.not_recorded = events_.not_recorded.read();
  counters.relocations = moves_.load(std::memory_order_relaxed);
  counters.sweeps = events_.sweeps.read();
}

void FlowTable::erase(Place place, Counter& why) {
  const FlowEntry entry = at(place);
  std::uint64_t* const words = words_ + static_cast<std::uint64_t>(place) * 2;
  Word(words[0]).store(0, std::memory_order_release);
  --used_;
  why.add();
  gauge(entry.life()).add(~std::uint64_t{0});
  counts_.leave(entry);
  counts_.streams.leave(entry, &why == &events_.expired);
}

Counter& FlowTable::gauge(FlowLife life) {
  if (life.state == FlowState::embryonic) return events_.embryonic;
  return life.closing() ? events_.closing : events_.established;
}

Counter* FlowTable::death_of(const FlowEntry& entry, const Snapshot& snapshot, FlowTime now) {
  const Service* const service = snapshot.service(entry.service());
  if (service == nullptr || snapshot.backend(entry.backend()) == nullptr) return &events_.gone;
  return is_expired(entry.life().state, entry.idle(now), *service) ? &events_.expired : nullptr;
}

}  // namespace holdfast

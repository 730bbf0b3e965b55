// SPDX-License-Identifier: Apache-2.0
// Where a flow table lays a newcomer: free places, moves that make one, and whose place it takes
// when there is none.
#include <algorithm>

#include "lb/flow/flow_life.h"
#include "lb/flow/flow_table.h"

namespace holdfast {
namespace {

/// Above this fill the search for a free place by relocation is mostly in vain, and a flood would
/// make every packet pay for it.
constexpr std::uint64_t kRelocateUpToPercent = 95;
/// Of a table's entries so many must be embryonic for one of them to be looked for beyond the
/// newcomer's own buckets: from here on seven of eight searches succeed.
constexpr std::uint64_t kDisplaceFromShare = 16;

}  // namespace

FlowTable::Place FlowTable::vacancy(std::uint64_t bucket, const Snapshot& snapshot, FlowTime now) {
  for (unsigned way = 0; way < kWays; ++way)
    if (FlowEntry{.word0 = relaxed(word_of(bucket, way))}.is_free()) return place_of(bucket, way);
  for (unsigned way = 0; way < kWays; ++way) {
    const Place place = place_of(bucket, way);
    if (Counter* const why = death_of(at(place), snapshot, now); why != nullptr) {
      erase(place, *why);
      return place;
    }
  }
  return kNowhere;
}

bool FlowTable::at_limit(const FlowEntry& fresh, const Service& service) const {
  const FlowCountRow& row = counts_.service(fresh.service());
  const auto reached = [&](std::uint64_t count, double share) {
    return share < 1.0 &&
           static_cast<double>(count) >= share * static_cast<double>(buckets_ * kWays);
  };
  return reached(row.entries(), service.max_share) ||
         (fresh.life().state == FlowState::embryonic &&
          reached(row.embryonic.read(), service.embryonic_share));
}

FlowTable::Place FlowTable::room_within_service(const Buckets& buckets, ServiceNumber service,
                                                const Snapshot& snapshot, FlowTime now) {
  Weakest oldest;
  for (const std::uint64_t bucket : {buckets.first, buckets.second}) {
    for (unsigned way = 0; way < kWays; ++way) {
      const Place place = place_of(bucket, way);
      const FlowEntry entry = at(place);
      if (entry.is_free() || entry.service() != service) continue;
      if (Counter* const why = death_of(entry, snapshot, now); why != nullptr) {
        erase(place, *why);
        return place;
      }
      if (entry.life().state == FlowState::embryonic) oldest.consider(place, entry.idle(now));
    }
  }
  if (oldest.place == kNowhere) return room_by_displacing(buckets, service, now);
  erase(oldest.place, events_.evicted_embryonic);
  return oldest.place;
}

FlowTable::Place FlowTable::room(const Buckets& buckets, const Snapshot& snapshot, FlowTime now) {
  Weakest embryonic;
  Weakest stale;
  for (const std::uint64_t bucket : {buckets.first, buckets.second}) {
    const Place place = look_through(bucket, snapshot, now, embryonic, stale);
    if (place != kNowhere) return place;
  }
  if (used_ * 100 <= capacity() * kRelocateUpToPercent)
    if (const Place place = room_by_relocation(buckets, snapshot, now); place != kNowhere)
      return place;
  if (embryonic.place != kNowhere) {
    erase(embryonic.place, events_.evicted_embryonic);
    return embryonic.place;
  }
  if (stale.place != kNowhere) {
    erase(stale.place, events_.evicted_stale);
    return stale.place;
  }
  return room_by_displacing(buckets, kNoService, now);
}

FlowTable::Place FlowTable::look_through(std::uint64_t bucket, const Snapshot& snapshot,
                                         FlowTime now, Weakest& embryonic, Weakest& stale) {
  Place dead = kNowhere;
  Counter* why = nullptr;
  for (unsigned way = 0; way < kWays; ++way) {
    const Place place = place_of(bucket, way);
    const FlowEntry entry = at(place);
    if (entry.is_free()) return place;
    const Service* const service = snapshot.service(entry.service());
    if (service == nullptr || snapshot.backend(entry.backend()) == nullptr) {
      dead = place;
      why = &events_.gone;
      continue;
    }
    const FlowTime idle = entry.idle(now);
    switch (rank_of(entry.life(), idle, *service)) {
      case FlowRank::expired:
        dead = place;
        why = &events_.expired;
        break;
      case FlowRank::embryonic:
        embryonic.consider(place, idle);
        break;
      case FlowRank::stale:
        stale.consider(place, idle);
        break;
      case FlowRank::closing:
      case FlowRank::established:
      case FlowRank::proven:
        break;
    }
  }
  if (dead != kNowhere) erase(dead, *why);
  return dead;
}

FlowTable::Neighbours FlowTable::neighbours_of(const Buckets& buckets) const {
  Neighbours neighbours;
  for (const std::uint64_t bucket : {buckets.first, buckets.second}) {
    for (unsigned way = 0; way < kWays; ++way) {
      Neighbour& next = neighbours.list[neighbours.count++];
      next = {place_of(bucket, way), other_of(bucket, way)};
      rte_prefetch0(word_of(next.other, 0));
    }
    if (buckets.first == buckets.second) break;
  }
  return neighbours;
}

FlowTable::Place FlowTable::room_by_relocation(const Buckets& buckets, const Snapshot& snapshot,
                                               FlowTime now) {
  const auto [neighbours, count] = neighbours_of(buckets);
  for (unsigned i = 0; i < count; ++i) {
    const Place to = vacancy(neighbours[i].other, snapshot, now);
    if (to == kNowhere) continue;
    move(neighbours[i].entry, to);
    return neighbours[i].entry;
  }
  // One neighbour ahead: mostly the first few have room, and a search in vain does not wait for
  // each of 32 buckets.
  prefetch_others_of(neighbours[0].other);
  for (unsigned i = 0; i < count; ++i) {
    if (i + 1 < count) prefetch_others_of(neighbours[i + 1].other);
    const std::uint64_t bucket = neighbours[i].other;
    for (unsigned way = 0; way < kWays; ++way) {
      const Place to = vacancy(other_of(bucket, way), snapshot, now);
      if (to == kNowhere) continue;
      const Place between = place_of(bucket, way);
      move(between, to);
      move(neighbours[i].entry, between);
      return neighbours[i].entry;
    }
  }
  return kNowhere;
}

FlowTable::Place FlowTable::room_by_displacing(const Buckets& buckets, ServiceNumber only,
                                               FlowTime now) {
  if (events_.embryonic.read() * kDisplaceFromShare < capacity()) return kNowhere;
  // The neighbours in the first bucket are nearly always enough.
  for (const std::uint64_t bucket : {buckets.first, buckets.second}) {
    prefetch_others_of(bucket);
    for (unsigned way = 0; way < kWays; ++way) {
      const Place oldest = oldest_embryonic(other_of(bucket, way), only, now);
      if (oldest == kNowhere) continue;
      erase(oldest, events_.evicted_embryonic);
      move(place_of(bucket, way), oldest);
      return place_of(bucket, way);
    }
  }
  return kNowhere;
}

FlowTable::Place FlowTable::oldest_embryonic(std::uint64_t bucket, ServiceNumber only,
                                             FlowTime now) const {
  Weakest oldest;
  for (unsigned way = 0; way < kWays; ++way) {
    const FlowEntry entry = at(place_of(bucket, way));
    if (entry.life().state == FlowState::embryonic &&
        (only == kNoService || entry.service() == only))
      oldest.consider(place_of(bucket, way), entry.idle(now));
  }
  return oldest.place;
}

void FlowTable::move(Place from, Place to) {
  store(to, at(from));
  // The order matters to peek(): the copy is there, then the counter says so, then the caller
  // overwrites `from`.
  moves_.store(moves_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

}  // namespace holdfast

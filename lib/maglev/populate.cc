// SPDX-License-Identifier: Apache-2.0
#include "lib/maglev/populate.h"

#include <algorithm>
#include <numeric>

namespace holdfast {

namespace {

/// Which slots have an owner. A bit a slot stays in the cache where the table would not: 80 KB
/// instead of 1.3 MB at 655373 slots.
class TakenSlots {
 public:
  explicit TakenSlots(std::uint32_t size) : words_((size + 63) / 64) {}
  [[nodiscard]] bool test(std::uint32_t slot) const { return (words_[slot / 64] >> slot % 64) & 1; }
  void set(std::uint32_t slot) { words_[slot / 64] |= std::uint64_t{1} << slot % 64; }

 private:
  std::vector<std::uint64_t> words_;
};

/// Walks its permutation; add-and-wrap needs no multiplication that could overflow.
struct Contender {
  std::uint32_t position;
  std::uint32_t skip;
  std::uint32_t weight;
  std::uint32_t share;
  std::uint32_t turns;  // taken so far; each gave one slot

  std::uint32_t claim(TakenSlots& taken, std::uint32_t size) {
    while (taken.test(position)) step(size);
    const std::uint32_t slot = position;
    taken.set(slot);
    step(size);
    return slot;
  }
  void step(std::uint32_t size) {
    const std::uint32_t room = size - position;
    position = skip < room ? position + skip : skip - room;
  }
  /// In each round a contender gains its weight, and a turn whenever the gains reach `heaviest`
  /// once more: so its turn number k is in round ceil(k * heaviest / weight), from 1.
  [[nodiscard]] std::uint64_t next_round(std::uint32_t heaviest) const {
    return ((std::uint64_t{turns} + 1) * heaviest + weight - 1) / weight;
  }
};

}  // namespace

std::vector<std::uint32_t> maglev_shares(std::span<const MaglevCandidate> candidates,
                                         std::uint32_t size) {
  std::uint64_t total = 0;
  for (const auto& candidate : candidates) total += candidate.weight;
  std::vector<std::uint32_t> shares(candidates.size());
  std::vector<std::uint64_t> remainders(candidates.size());
  std::uint32_t left = size;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const std::uint64_t product = std::uint64_t{size} * candidates[i].weight;
    shares[i] = static_cast<std::uint32_t>(product / total);
    remainders[i] = product % total;
    left -= shares[i];
  }
  if (candidates.empty()) return shares;
  std::vector<std::size_t> order(candidates.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return remainders[a] > remainders[b]; });
  for (std::uint32_t i = 0; i < left; ++i) ++shares[order[i]];
  return shares;
}

MaglevTable populate_maglev(std::span<const MaglevCandidate> candidates, std::uint32_t size) {
  if (candidates.empty()) return {};
  const auto shares = maglev_shares(candidates, size);
  std::uint32_t heaviest = 0;
  std::uint32_t lightest = candidates[0].weight;
  std::vector<Contender> contenders;
  contenders.reserve(candidates.size());
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const auto& [offset, skip, weight] = candidates[i];
    contenders.push_back({offset, skip, weight, shares[i], 0});
    heaviest = std::max(heaviest, weight);
    lightest = std::min(lightest, weight);
  }

  // A calendar of rounds instead of a walk over all contenders in each: with one heavy and many
  // light ones nearly every visit would be in vain. No turn is further ahead than the ring is long.
  std::vector<std::vector<std::uint16_t>> calendar((heaviest + lightest - 1) / lightest + 1);
  const auto enter = [&](std::size_t index) {
    const Contender& contender = contenders[index];
    if (contender.turns == contender.share) return;
    calendar[contender.next_round(heaviest) % calendar.size()].push_back(
        static_cast<std::uint16_t>(index));
  };
  for (std::size_t i = 0; i < contenders.size(); ++i) enter(i);

  MaglevTable table(size);
  TakenSlots taken(size);
  std::uint32_t filled = 0;
  std::vector<std::uint16_t> due;
  for (std::size_t round = 1; filled < size; ++round) {
    due.clear();
    due.swap(calendar[round % calendar.size()]);
    // Within a round the order is that of the candidates, whatever rounds they come from.
    if (!std::is_sorted(due.begin(), due.end())) std::sort(due.begin(), due.end());
    for (const std::uint16_t index : due) {
      Contender& contender = contenders[index];
      table[contender.claim(taken, size)] = index;
      ++contender.turns;
      ++filled;
      enter(index);
    }
  }
  return table;
}

}  // namespace holdfast

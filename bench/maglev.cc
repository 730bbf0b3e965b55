// SPDX-License-Identifier: Apache-2.0
// Maglev: what a table costs beside the plain algorithm with the same permutations, what the
// overlay costs when one backend goes out, which slots move then, and how even the shares are.
#include <fmt/core.h>
#include <xxhash.h>

#include <algorithm>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/groups.h"
#include "lib/maglev/maglev.h"
#include "lib/maglev/populate.h"

namespace holdfast::bench {
namespace {

constexpr HashSeed kSeed{0x5eed};
constexpr std::uint32_t kSizes[] = {65537, 655373};
constexpr std::size_t kCounts[] = {10, 100, 1000, 10000};
constexpr std::size_t kJudged = 1000;

/// Sorted by address, as the order of turns wants it.
std::vector<MaglevBackend> fleet(std::size_t count) {
  std::vector<MaglevBackend> backends;
  for (std::size_t i = 0; i < count; ++i)
    backends.push_back(
        {IpAddress::v4(Be32::from_host(0x0a000001u + static_cast<std::uint32_t>(i))), 100});
  return backends;
}

/// NSDI 2016, section 3.4, pseudocode 1, with the permutations computed where they are read: as a
/// matrix, as the paper has them, 1000 of 655373 slots would take 2.6 GB.
class PlainMaglev {
 public:
  PlainMaglev(const std::vector<MaglevBackend>& backends, std::uint32_t size) : size_(size) {
    for (const MaglevBackend& backend : backends) {
      std::uint8_t bytes[17] = {4};
      std::copy(backend.address.bytes().begin(), backend.address.bytes().end(), bytes + 1);
      const XXH128_hash_t hash = XXH3_128bits_withSeed(bytes, sizeof bytes, kSeed.value);
      permutations_.push_back({hash.low64 % size, hash.high64 % (size - 1) + 1});
    }
  }

  [[nodiscard]] std::vector<int> populate() const {
    std::vector<std::uint64_t> next(permutations_.size(), 0);
    std::vector<int> entry(size_, -1);
    for (std::uint32_t filled = 0;;) {
      for (std::size_t i = 0; i < permutations_.size(); ++i) {
        std::uint64_t candidate = slot(i, next[i]);
        while (entry[candidate] >= 0) candidate = slot(i, ++next[i]);
        entry[candidate] = static_cast<int>(i);
        ++next[i];
        if (++filled == size_) return entry;
      }
    }
  }

 private:
  struct Permutation {
    std::uint64_t offset;
    std::uint64_t skip;
  };

  [[nodiscard]] std::uint64_t slot(std::size_t i, std::uint64_t j) const {
    return (permutations_[i].offset + j * permutations_[i].skip) % size_;
  }

  std::uint32_t size_;
  std::vector<Permutation> permutations_;
};

/// Two programs that build different tables are not in the same race.
void require_same(const MaglevTable& ours, const std::vector<int>& plain) {
  if (!std::equal(ours.begin(), ours.end(), plain.begin(), plain.end()))
    throw std::runtime_error("maglev: the plain algorithm builds another table");
}

std::vector<bool> without(std::size_t count, std::size_t out) {
  std::vector<bool> eligible(count, true);
  eligible[out] = false;
  return eligible;
}

void add_milliseconds(Report& report, const std::string& name, const Timing& timing) {
  for (const auto& [suffix, unit, samples] :
       {std::tuple{"", "ms cpu", &timing.cpu}, std::tuple{"/wall", "ms", &timing.wall}}) {
    std::vector<double> milliseconds;
    for (const double nanoseconds : *samples) milliseconds.push_back(nanoseconds * 1e-6);
    report.add({name + suffix, Spread::of(std::move(milliseconds)), unit});
  }
}

/// What a build may cost beside the plain algorithm.
std::optional<Goal> build_goal(std::uint32_t size, std::size_t count) {
  if (count != kJudged) return {};
  return at_most(size == 65537 ? 1.2 : 0.8);
}

void add_costs(Report& report, const Options& options, std::uint32_t size, std::size_t count) {
  const auto backends = fleet(count);
  const PlainMaglev plain(backends, size);
  const MaglevTable base = build_maglev(backends, kSeed, size);
  require_same(base, plain.populate());
  const std::vector<bool> one_out = without(count, count / 2);

  const auto repeat = [times = 655373 / size](auto work) {
    return [times, work] {
      for (std::uint32_t i = 0; i < times; ++i) keep(static_cast<std::uint64_t>(work()));
      return std::uint64_t{times};
    };
  };
  const auto timings = race(
      {{"plain", repeat([&] { return plain.populate().back(); })},
       {"build", repeat([&] { return build_maglev(backends, kSeed, size).back(); })},
       {"overlay", repeat([&] { return overlay_maglev(base, backends, one_out, kSeed).back(); })},
       {"digest", repeat([&] { return maglev_digest(base, backends); })}},
      options.rounds());

  const std::string prefix = fmt::format("maglev/{} slots/{} backends", size, count);
  for (const Timing& timing : timings) add_milliseconds(report, prefix + "/" + timing.name, timing);
  report.add({prefix + "/build to plain", Spread::of(ratios(timings[1], timings[0])), "ratio",
              build_goal(size, count)});
  report.add({prefix + "/overlay of one out to build", Spread::of(ratios(timings[2], timings[1])),
              "ratio"});
}

/// The fullest backend's slots over the mean of those that have any.
double fullest_to_mean(const MaglevTable& table, std::size_t count) {
  std::vector<std::size_t> slots(count);
  for (const auto owner : table) ++slots[owner];
  const auto owners = std::count_if(slots.begin(), slots.end(), [](auto n) { return n > 0; });
  return static_cast<double>(*std::max_element(slots.begin(), slots.end())) *
         static_cast<double>(owners) / static_cast<double>(table.size());
}

/// `out` of `count` backends go out, some draws of which.
void add_moves(Report& report, const Options& options, std::uint32_t size, std::size_t count,
               std::size_t out) {
  const auto backends = fleet(count);
  const MaglevTable base = build_maglev(backends, kSeed, size);
  std::mt19937 random(1);
  std::vector<double> by_rebuild;
  std::vector<double> by_overlay;
  std::vector<double> fullest;
  for (int draw = 0; draw < (options.quick ? 3 : 9); ++draw) {
    std::vector<bool> eligible(count, true);
    std::fill_n(eligible.begin(), out, false);
    std::shuffle(eligible.begin(), eligible.end(), random);
    auto survivors = backends;  // weight 0 takes one out of the table and keeps the indices
    for (std::size_t i = 0; i < count; ++i)
      if (!eligible[i]) survivors[i].weight = 0;
    const MaglevTable rebuilt = build_maglev(survivors, kSeed, size);
    const MaglevTable overlay = overlay_maglev(base, backends, eligible, kSeed);
    double rebuild_moves = 0;
    double overlay_moves = 0;
    for (std::size_t slot = 0; slot < size; ++slot) {
      if (!eligible[base[slot]]) continue;
      rebuild_moves += rebuilt[slot] != base[slot];
      overlay_moves += overlay[slot] != base[slot];
    }
    by_rebuild.push_back(100 * rebuild_moves / size);
    by_overlay.push_back(100 * overlay_moves / size);
    fullest.push_back(fullest_to_mean(overlay, count));
  }
  const std::string prefix = fmt::format("maglev/{} slots/{} of {} out", size, out, count);
  report.add({prefix + "/survivors' slots moved by a rebuild", Spread::of(by_rebuild), "%"});
  report.add(
      {prefix + "/survivors' slots moved by the overlay", Spread::of(by_overlay), "%", at_most(0)});
  report.add({prefix + "/fullest to mean", Spread::of(fullest), "ratio"});
}

}  // namespace

void run_maglev(Report& report, const Options& options) {
  for (const std::uint32_t size : kSizes)
    for (const std::size_t count : kCounts)
      if (!options.quick || count == kJudged) add_costs(report, options, size, count);
  for (const std::uint32_t size : kSizes) {
    for (const std::size_t count : kCounts) {
      report.add(fmt::format("maglev/{} slots/{} backends/fullest to mean", size, count),
                 fullest_to_mean(build_maglev(fleet(count), kSeed, size), count), "ratio");
      add_moves(report, options, size, count, 1);
      if (count > 10) add_moves(report, options, size, count, count / 10);
      if (!options.quick) add_moves(report, options, size, count, count / 2);
    }
  }
}

}  // namespace holdfast::bench

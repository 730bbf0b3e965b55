// SPDX-License-Identifier: Apache-2.0
// What Maglev costs and what it moves:
//   build      milliseconds of CPU for a whole table, for the overlay with one backend out, for the
//   digest;
//              median of 9 with the range, after one that does not count
//   worst      the same build when all permutations are equal (never seen: they come from a hash)
//   down       k of N backends go down: slots of survivors that move when the table is built anew,
//              and with the overlay; the fullest survivor relative to the mean; mean of some draws
// Run: build/bench/maglev_bench (about 20 s).
#include <fmt/core.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "lib/maglev/maglev.h"
#include "lib/maglev/populate.h"

using namespace holdfast;

namespace {

constexpr HashSeed kSeed{0x5eed};

std::vector<MaglevBackend> fleet(std::size_t count) {
  std::vector<MaglevBackend> backends;
  for (std::size_t i = 0; i < count; ++i)
    backends.push_back(
        {IpAddress::v4(Be32::from_host(0x0a000001u + static_cast<std::uint32_t>(i))), 100});
  return backends;
}

/// CPU time of this thread, so that a busy machine does not show.
double cpu_milliseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

std::uint64_t checksum = 0;  // of all results; printed, so that none is left out

/// "median (min-max)". `work` returns a part of its result.
std::string milliseconds(const std::function<std::uint64_t()>& work) {
  std::vector<double> times;
  for (int i = 0; i < 10; ++i) {
    const double start = cpu_milliseconds();
    checksum += work();
    if (i > 0) times.push_back(cpu_milliseconds() - start);
  }
  std::sort(times.begin(), times.end());
  return fmt::format("{:.2f} ({:.2f}-{:.2f})", times[4], times.front(), times.back());
}

void print_times(std::uint32_t size, std::size_t count) {
  const auto backends = fleet(count);
  const auto base = build_maglev(backends, kSeed, size);
  std::vector<bool> eligible(count, true);
  eligible[count / 2] = false;
  fmt::print("build  {:>7} {:>6}   {:>24} {:>24} {:>24}\n", size, count,
             milliseconds([&] { return build_maglev(backends, kSeed, size)[0]; }),
             milliseconds([&] { return overlay_maglev(base, backends, eligible, kSeed)[0]; }),
             milliseconds([&] { return maglev_digest(base, backends); }));
}

void print_worst(std::uint32_t size, std::size_t count) {
  const std::vector<MaglevCandidate> same(count, MaglevCandidate{5, 3, 1});
  fmt::print("worst  {:>7} {:>6}   {:>24}\n", size, count,
             milliseconds([&] { return populate_maglev(same, size)[0]; }));
}

void print_moves(std::uint32_t size, std::size_t count, std::size_t down) {
  const auto backends = fleet(count);
  const auto base = build_maglev(backends, kSeed, size);
  std::mt19937 random(1);
  constexpr int kDraws = 10;
  double rebuilt_moves = 0;
  double overlay_moves = 0;
  double fullest = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    std::vector<bool> eligible(count, true);
    std::fill_n(eligible.begin(), down, false);
    std::shuffle(eligible.begin(), eligible.end(), random);
    // Built anew: weight 0 takes a backend out and keeps the indices.
    auto survivors = backends;
    for (std::size_t i = 0; i < count; ++i)
      if (!eligible[i]) survivors[i].weight = 0;
    const auto rebuilt = build_maglev(survivors, kSeed, size);
    const auto overlay = overlay_maglev(base, backends, eligible, kSeed);
    std::vector<std::size_t> slots(count);
    for (std::size_t slot = 0; slot < size; ++slot) {
      ++slots[overlay[slot]];
      if (!eligible[base[slot]]) continue;
      rebuilt_moves += rebuilt[slot] != base[slot];
      overlay_moves += overlay[slot] != base[slot];
    }
    fullest += static_cast<double>(*std::max_element(slots.begin(), slots.end())) *
               static_cast<double>(count - down) / size;
  }
  fmt::print("down   {:>7} {:>6} {:>5}   {:>9.2f} % {:>9.2f} % {:>12.3f}\n", size, count, down,
             100 * rebuilt_moves / kDraws / size, 100 * overlay_moves / kDraws / size,
             fullest / kDraws);
}

}  // namespace

int main() {
  fmt::print(
      "          slots backends                build ms               overlay ms"
      "                digest ms\n");
  for (const std::uint32_t size : {65537u, 655373u})
    for (const std::size_t count : {10u, 100u, 1000u, 5000u}) print_times(size, count);
  fmt::print("\n");
  print_worst(65537, 1000);
  print_worst(655373, 1000);
  fmt::print("\n          slots backends down   rebuilt     overlay     fullest/mean\n");
  for (const std::uint32_t size : {65537u, 655373u})
    for (const auto& [count, down] : {std::pair<std::size_t, std::size_t>{10, 1},
                                      {100, 1},
                                      {100, 10},
                                      {1000, 1},
                                      {1000, 10},
                                      {1000, 500}})
      print_moves(size, count, down);
  fmt::print("\nchecksum {:016x}\n", checksum);
  return EXIT_SUCCESS;
}

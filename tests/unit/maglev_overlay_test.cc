// SPDX-License-Identifier: Apache-2.0
// The effective table: what moves, and what must not, while backends come and go.
#include <algorithm>
#include <random>

#include "lib/maglev/maglev.h"
#include "tests/catch.h"

using namespace holdfast;

namespace {

constexpr HashSeed kSeed{0xfeedfacecafebeef};
constexpr std::uint32_t kSize = 65537;

std::vector<MaglevBackend> fleet(std::size_t count, std::uint32_t weight = 100) {
  std::vector<MaglevBackend> backends;
  for (std::size_t i = 0; i < count; ++i)
    backends.push_back(
        {IpAddress::v4(Be32::from_host(0x0a000001u + static_cast<std::uint32_t>(i))), weight});
  return backends;
}

struct Fixture {
  std::vector<MaglevBackend> backends;
  MaglevTable base;
  std::vector<bool> eligible;

  explicit Fixture(std::size_t count, std::uint32_t size = kSize)
      : backends(fleet(count)), base(build_maglev(backends, kSeed, size)), eligible(count, true) {}

  [[nodiscard]] MaglevTable effective() const {
    return overlay_maglev(base, backends, eligible, kSeed);
  }
  /// Slots in which `table` breaks the promise: an eligible base owner lost it, or the owner is
  /// out.
  [[nodiscard]] std::size_t broken(const MaglevTable& table) const {
    std::size_t count = 0;
    for (std::size_t slot = 0; slot < base.size(); ++slot) {
      if (eligible[base[slot]] && table[slot] != base[slot]) ++count;
      if (!eligible[table[slot]]) ++count;
    }
    return count;
  }
  /// The fullest eligible backend's slots, relative to the mean of the eligible ones.
  [[nodiscard]] double fullest(const MaglevTable& table) const {
    std::vector<std::size_t> slots(backends.size());
    for (const auto owner : table) ++slots[owner];
    const auto most = *std::max_element(slots.begin(), slots.end());
    const auto count = std::count(eligible.begin(), eligible.end(), true);
    return static_cast<double>(most) * static_cast<double>(count) /
           static_cast<double>(table.size());
  }
};

}  // namespace

TEST_CASE("while all are eligible the effective table is the base") {
  const Fixture pool(100);
  CHECK(pool.effective() == pool.base);
}

TEST_CASE("one backend down moves its own slots and no other") {
  Fixture pool(100);
  pool.eligible[41] = false;
  const auto table = pool.effective();
  CHECK(pool.broken(table) == 0);
  for (std::size_t slot = 0; slot < kSize; ++slot)
    if (pool.base[slot] != 41) REQUIRE(table[slot] == pool.base[slot]);
}

TEST_CASE("many at once, in any order: a slot whose base owner is and stays eligible never moves") {
  std::mt19937 random(30);
  Fixture pool(60, 16381);
  auto before = pool.effective();
  for (int step = 0; step < 120; ++step) {
    const auto was = pool.eligible;
    for (std::size_t flips = 1 + random() % 12; flips > 0; --flips) {
      const std::size_t i = random() % pool.eligible.size();
      pool.eligible[i] = !pool.eligible[i];
    }
    if (std::count(pool.eligible.begin(), pool.eligible.end(), true) == 0) continue;
    const auto after = pool.effective();
    CAPTURE(step);
    REQUIRE(pool.broken(after) == 0);
    for (std::size_t slot = 0; slot < after.size(); ++slot)
      if (was[pool.base[slot]] && pool.eligible[pool.base[slot]])
        REQUIRE(after[slot] == before[slot]);
    before = after;
  }
  pool.eligible.assign(pool.eligible.size(), true);
  CHECK(pool.effective() == pool.base);
}

TEST_CASE("the effective table depends on who is eligible, not on the way there") {
  Fixture one(40, 16381);
  Fixture other(40, 16381);
  one.eligible[3] = one.eligible[17] = false;
  other.eligible[17] = false;
  (void)other.effective();
  other.eligible[3] = false;
  CHECK(one.effective() == other.effective());
}

TEST_CASE("the order of the backends changes no slot's owner of the effective table") {
  Fixture pool(50, 16381);
  for (std::size_t i = 0; i < 50; i += 7) pool.eligible[i] = false;
  Fixture reversed(50, 16381);
  std::reverse(reversed.backends.begin(), reversed.backends.end());
  reversed.base = build_maglev(reversed.backends, kSeed, 16381);
  for (std::size_t i = 0; i < 50; i += 7) reversed.eligible[49 - i] = false;
  CHECK(maglev_digest(pool.effective(), pool.backends) ==
        maglev_digest(reversed.effective(), reversed.backends));
}

TEST_CASE("what the lost backends had is shared out among all survivors") {
  // Independent measurement: the fullest is at 1.008 to 1.083 times the mean.
  Fixture pool(100);
  pool.eligible[7] = false;
  CHECK(pool.fullest(pool.effective()) < 1.03);
  for (std::size_t i = 0; i < 10; ++i) pool.eligible[i] = false;
  CHECK(pool.fullest(pool.effective()) < 1.05);
  for (std::size_t i = 0; i < 50; ++i) pool.eligible[i] = false;
  CHECK(pool.fullest(pool.effective()) < 1.10);
}

TEST_CASE("the last eligible backend gets every slot, and with none the table is empty") {
  Fixture pool(5);
  pool.eligible = {false, false, true, false, false};
  CHECK(pool.effective() == MaglevTable(kSize, 2));
  pool.eligible[2] = false;
  CHECK(pool.effective().empty());
}

TEST_CASE("an eligible backend of weight 0 gets nothing, even when it is the only one") {
  auto backends = fleet(3);
  backends[1].weight = 0;
  const auto base = build_maglev(backends, kSeed, kSize);
  CHECK(overlay_maglev(base, backends, {true, false, true}, kSeed) == base);
  CHECK(overlay_maglev(base, backends, {false, true, false}, kSeed).empty());
}

TEST_CASE("an empty base has an empty overlay") {
  const auto backends = fleet(2, 0);
  CHECK(overlay_maglev({}, backends, {true, true}, kSeed).empty());
}

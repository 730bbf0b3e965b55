// SPDX-License-Identifier: Apache-2.0
#include "ctrl/reconcile/pool_tables.h"

#include "tests/catch.h"

using namespace holdfast;

namespace {

PoolTablesInput input() {
  PoolTablesInput result{.size = 251, .seed = {1}};
  for (std::uint16_t i = 0; i < 3; ++i) {
    result.backends.push_back({IpAddress::v4(Be32::from_host(0x0a000001u + i)), 100});
    result.numbers.push_back(BackendNumber{i});
    result.takes_flows.push_back(true);
  }
  return result;
}

}  // namespace

TEST_CASE("the same input gives back the very same tables") {
  const auto tables = build_tables(input(), nullptr);
  CHECK(build_tables(input(), tables) == tables);
}

TEST_CASE("each part of the input that shapes the base makes a new one") {
  const auto tables = build_tables(input(), nullptr);
  auto changed = input();
  SECTION("the size") { changed.size = 509; }
  SECTION("the seed") { changed.seed.value = 2; }
  SECTION("a weight") { changed.backends[1].weight = 99; }
  SECTION("an address") {
    changed.backends[2].address = IpAddress::v4(Be32::from_host(0x0a0000ffu));
  }
  SECTION("a number, though the owners are the same") {
    changed.numbers[1] = BackendNumber{7};
    const auto next = build_tables(changed, tables);
    CHECK(next->base_digest == tables->base_digest);
    for (std::size_t slot = 0; slot < 251; ++slot)
      REQUIRE(
          (*next->base)[slot] ==
          ((*tables->base)[slot] == BackendNumber{1} ? BackendNumber{7} : (*tables->base)[slot]));
  }
  CHECK(build_tables(changed, tables)->base != tables->base);
}

TEST_CASE("who takes flows shapes the effective table only") {
  const auto tables = build_tables(input(), nullptr);
  auto changed = input();
  changed.takes_flows[0] = false;
  const auto next = build_tables(changed, tables);
  CHECK(next->base == tables->base);
  CHECK(next->effective != tables->effective);
  CHECK(next->base_slots == tables->base_slots);
  CHECK(next->effective_slots[0] == 0);
  CHECK(next->effective_slots[1] + next->effective_slots[2] == 251);
  CHECK(build_tables(input(), next)->effective == tables->base);
}

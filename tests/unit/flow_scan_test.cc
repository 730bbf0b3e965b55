// SPDX-License-Identifier: Apache-2.0
// Reading all flow tables from another thread: what is shown, slice by slice, and that nothing
// tears while an owner writes (run it with TSan).
#include "lb/flow/flow_scan.h"

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "lb/flow/flow_life.h"
#include "lib/model/flow_filter.h"
#include "tests/catch.h"
#include "tests/unit/flow_fixture.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

constexpr FlowTime kNow{400};  // 100 s
constexpr FlowLife kEmbryo{FlowState::embryonic, 0};
constexpr FlowLife kEstablished{FlowState::established, 1};
constexpr FlowLife kProvenFlow{FlowState::established, FlowLife::kProven};

/// One worker's table.
struct Side {
  FlowCounts counts;
  FlowTable table;
  Snapshot snapshot = two_services();

  explicit Side(std::uint64_t capacity) : table(capacity, -1, counts) {}
  FlowHash add(const FlowHash& hash, FlowEntry entry) {
    REQUIRE(table.insert(hash, entry, snapshot, kNow));
    return hash;
  }
};

/// Everything, in slices.
std::vector<FlowRow> rows_of(std::span<const FlowTable* const> tables, std::uint64_t slice,
                             FlowTime now = kNow) {
  std::vector<FlowRow> rows;
  std::optional<FlowPosition> at = FlowPosition{};
  while (at) {
    at = scan_flows(tables, now, *at, slice, [&](const FlowRow& row) {
      rows.push_back(row);
      return true;
    });
  }
  return rows;
}

TEST_CASE("a scan shows each entry with worker, service, backend, state, age, idle time and tag") {
  Side first(64);
  Side second(64);
  Random random(1);
  const FlowHash old = random.hash();
  auto entry = entry_of(old, kBackendB, kUdpService, kProvenFlow, FlowTime{0});
  entry.set_last_seen(kNow - FlowTime{10s});
  entry.set_adopted(true);
  second.add(old, entry);
  const std::array tables{static_cast<const FlowTable*>(&first.table),
                          static_cast<const FlowTable*>(&second.table)};
  CHECK(rows_of(tables, 1000) == std::vector<FlowRow>{{.tag = flow_tag(old),
                                                       .age = 100s,
                                                       .idle = 10s,
                                                       .worker = 1,
                                                       .service = kUdpService,
                                                       .backend = kBackendB,
                                                       .state = FlowRow::State::proven,
                                                       .adopted = true,
                                                       .stream = true}});

  const FlowHash young = random.hash();
  first.add(young, entry_of(young, kBackendA, kTcpService, kEmbryo, kNow - FlowTime{1}));
  const auto rows = rows_of(tables, 1000);
  REQUIRE(rows.size() == 2);
  CHECK(rows[0] == FlowRow{.tag = flow_tag(young),
                           .age = 250ms,
                           .idle = 250ms,
                           .worker = 0,
                           .service = kTcpService,
                           .backend = kBackendA,
                           .state = FlowRow::State::embryonic});
}

TEST_CASE("a scan tells the states of a flow's life apart") {
  const std::vector<std::pair<FlowLife, FlowRow::State>> states{
      {kEmbryo, FlowRow::State::embryonic},
      {{FlowState::established, 0}, FlowRow::State::established},
      {kEstablished, FlowRow::State::established},
      {kProvenFlow, FlowRow::State::proven},
      {{FlowState::closing_fin, 0}, FlowRow::State::closing},
      {{FlowState::closing_rst, FlowLife::kProven}, FlowRow::State::closing},
      {{FlowState::closing_embryonic, 0}, FlowRow::State::closing}};
  Random random(2);
  for (const auto& [life, state] : states) {
    Side side(4);
    const FlowHash hash = random.hash();
    side.add(hash, entry_of(hash, kBackendA, kTcpService, life, kNow));
    const std::array tables{static_cast<const FlowTable*>(&side.table)};
    const auto rows = rows_of(tables, 4);
    REQUIRE(rows.size() == 1);
    CHECK(rows[0].state == state);
    CHECK(rows[0].active() == (life.state == FlowState::established));
    CHECK(rows[0].stream == was_established(life));
    CHECK(rows[0].reset == (life.state == FlowState::closing_rst));
  }
}

TEST_CASE("a packet that comes while a scan runs makes no flow days old or silent") {
  Side side(4);
  Random random(3);
  const FlowHash hash = random.hash();
  side.add(hash, entry_of(hash, kBackendA, kTcpService, kEstablished, kNow + FlowTime{3}));
  const std::array tables{static_cast<const FlowTable*>(&side.table)};
  const auto rows = rows_of(tables, 4);
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].idle == 0ms);
  CHECK(rows[0].age == 0ms);
  // Times that are as long as they get are still told.
  const auto later = rows_of(tables, 4, kNow + FlowTime{3} + FlowTime{5 * 24h});
  CHECK(later[0].idle == 5 * 24h);
  const auto oldest = rows_of(tables, 4, kNow + FlowTime{3} + FlowEntry::kOldest);
  CHECK(oldest[0].age == FlowEntry::kOldest);
}

TEST_CASE("slices of any size show every entry once, in the same order") {
  std::vector<std::unique_ptr<Side>> sides;
  std::vector<const FlowTable*> tables;
  Random random(4);
  std::size_t flows = 0;
  for (const std::uint64_t capacity : {4u, 40u, 4u, 1000u}) {
    auto side = std::make_unique<Side>(capacity);
    for (std::uint64_t i = 0; i < capacity / 4; ++i, ++flows) {
      const FlowHash hash = random.hash();
      side->add(hash, entry_of(hash, kBackendA, kTcpService, kEmbryo, kNow));
    }
    tables.push_back(&side->table);
    sides.push_back(std::move(side));
  }
  const auto all = rows_of(tables, 1'000'000);
  CHECK(all.size() == flows);
  for (const std::uint64_t slice : {1u, 3u, 4u, 37u, 1048u}) CHECK(rows_of(tables, slice) == all);
}

TEST_CASE("a scan stops where its visitor has enough, and goes on behind that entry") {
  Side side(400);
  Random random(5);
  for (int i = 0; i < 100; ++i) {
    const FlowHash hash = random.hash();
    side.add(hash, entry_of(hash, kBackendA, kTcpService, kEmbryo, kNow));
  }
  const std::array tables{static_cast<const FlowTable*>(&side.table)};
  const auto all = rows_of(tables, 1000);
  std::vector<FlowRow> rows;
  std::optional<FlowPosition> at = FlowPosition{};
  std::size_t pages = 0;
  for (; at; ++pages) {
    std::size_t left = 7;
    at = scan_flows(tables, kNow, *at, 1000, [&](const FlowRow& row) {
      rows.push_back(row);
      return --left > 0;
    });
  }
  CHECK(rows == all);
  CHECK(pages >= 100 / 7);
}

TEST_CASE("a scan from a place that no table has ends at once or goes on with the next table") {
  Side side(8);
  const std::array tables{static_cast<const FlowTable*>(&side.table)};
  const auto nothing = [](const FlowRow&) { return true; };
  CHECK_FALSE(scan_flows(tables, kNow, {.worker = 1}, 100, nothing));
  CHECK_FALSE(scan_flows(tables, kNow, {.worker = 0, .place = 8}, 100, nothing));
  CHECK_FALSE(scan_flows({}, kNow, {}, 100, nothing));
  CHECK(scan_flows(tables, kNow, {.worker = 0, .place = 6}, 1, nothing) ==
        FlowPosition{.worker = 0, .place = 7});
}

TEST_CASE("what a scan finds agrees with the gauges of every service and backend") {
  Side side(512);
  Random random(7);
  std::vector<FlowHash> flows(700);
  for (auto& flow : flows) flow = random.hash();
  const std::array services{kTcpService, kUdpService};
  const std::array backends{kBackendA, kBackendB, kBackendC};
  const std::array lives{kEmbryo, kEstablished, kProvenFlow, FlowLife{FlowState::closing_fin, 1}};
  const std::array tables{static_cast<const FlowTable*>(&side.table)};
  FlowTime now = kNow;
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 200; ++i) {
      const FlowHash& hash = random.one_of(flows);
      const auto fresh = entry_of(hash, random.one_of(backends), random.one_of(services),
                                  random.one_of(lives), now);
      const auto place = side.table.find(hash);
      if (place == FlowTable::kNowhere)
        (void)side.table.insert(hash, fresh, side.snapshot, now);
      else if (random.below(4) == 0)
        side.table.drop_gone(place);
      else
        side.table.update(place, side.table.at(place), fresh);
    }
    now += FlowTime{4};
    side.table.sweep(side.snapshot, now, 100);

    FlowCensus census(std::nullopt);
    for (const FlowRow& row : rows_of(tables, 100, now)) census.add(row);
    std::array<FlowTally, 2> by_service{};
    std::array<FlowTally, 3> by_backend{};
    for (const auto& group : census.largest(100)) {
      by_service.at(index_of(group.service)) += group.flows;
      by_backend.at(index_of(group.backend)) += group.flows;
    }
    const auto tally = [](const FlowCounters& counters) {
      return FlowTally{.active = static_cast<std::uint64_t>(counters.active),
                       .embryonic = static_cast<std::uint64_t>(counters.embryonic),
                       .closing = static_cast<std::uint64_t>(counters.closing)};
    };
    for (const auto service : services)
      REQUIRE(by_service.at(index_of(service)) == tally(side.counts.service(service).read()));
    for (const auto backend : backends)
      REQUIRE(by_backend.at(index_of(backend)) == tally(side.counts.backend(backend).read()));
    REQUIRE(census.total().sum() > 0);
  }
}

TEST_CASE("a scan while the owner writes never shows parts of two flows as one in word 0") {
  // A flow's tag tells its backend, so that a torn word would be seen. Service and times may be
  // another's for a moment, so they only have to be ones that exist.
  Side side(256);
  const auto backend_of = [](std::uint64_t tag) { return static_cast<BackendNumber>(tag % 3); };
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> written{0};
  std::thread owner([&] {
    Random random(6);
    std::vector<FlowHash> flows(400);
    for (auto& flow : flows) flow = random.hash();
    FlowTime now = kNow;
    while (!stop.load(std::memory_order_relaxed)) {
      const FlowHash& hash = random.one_of(flows);
      now += FlowTime{1};
      const auto backend = backend_of(flow_tag(hash));
      const auto place = side.table.find(hash);
      if (place == FlowTable::kNowhere) {
        (void)side.table.insert(hash, entry_of(hash, backend, kTcpService, kEmbryo, now),
                                side.snapshot, now);
      } else if (random.below(3) == 0) {
        side.table.expire(place);
      } else {
        const FlowEntry before = side.table.at(place);
        FlowEntry after = before;
        after.set_last_seen(now);
        after.set_life(kEstablished);
        side.table.update(place, before, after);
      }
      written.fetch_add(1, std::memory_order_relaxed);
    }
  });
  const std::array tables{static_cast<const FlowTable*>(&side.table)};
  std::uint64_t seen = 0;
  std::uint64_t wrong = 0;
  while (written.load(std::memory_order_relaxed) < 20'000 || seen < 20'000) {
    for (const FlowRow& row : rows_of(tables, 64)) {
      ++seen;
      if (row.backend != backend_of(row.tag) || row.service != kTcpService) ++wrong;
    }
  }
  stop = true;
  owner.join();
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace holdfast

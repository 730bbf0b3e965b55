// SPDX-License-Identifier: Apache-2.0
// What a flow table finds and does not find, the clock's wraps, and what the sweep leaves behind.
#include "lb/flow/flow_table.h"

#include <algorithm>
#include <vector>

#include "tests/catch.h"
#include "tests/unit/flow_fixture.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

constexpr FlowLife kEstablished{FlowState::established, 0};
constexpr FlowLife kProvenFlow{FlowState::established, FlowLife::kProven};

}  // namespace

TEST_CASE("every capacity works, and an entry's other bucket leads back to the first") {
  const Snapshot snapshot = two_services();
  for (const std::uint64_t capacity : {1U, 4U, 5U, 12U, 100U, 1000U, 4096U, 4100U}) {
    CAPTURE(capacity);
    FlowCounts counts;
    FlowTable table(capacity, -1, counts);
    CHECK(table.capacity() >= capacity);
    CHECK(table.capacity() < capacity + FlowTable::kWays);
    // Filled to the brim, most entries have been moved or lie in their second bucket.
    Random random(capacity);
    std::vector<FlowHash> recorded;
    for (std::uint64_t i = 0; i < 2 * capacity; ++i) {
      const FlowHash hash = random.hash();
      const FlowEntry fresh = entry_of(hash, kBackendB, kTcpService, kProvenFlow, FlowTime{9});
      if (table.insert(hash, fresh, snapshot, FlowTime{9})) recorded.push_back(hash);
    }
    for (const FlowHash& hash : recorded) {
      REQUIRE(table.find(hash) != FlowTable::kNowhere);
      REQUIRE(table.peek(hash)->backend == kBackendB);
    }
    check_identity(table);
  }
}

TEST_CASE("a flow that is not in the table is not found") {
  const Snapshot snapshot = two_services();
  FlowCounts counts;
  FlowTable table(4096, -1, counts);
  Random random(11);
  for (int i = 0; i < 4096; ++i) {
    const FlowHash hash = random.hash();
    static_cast<void>(table.insert(hash,
                                   entry_of(hash, kBackendA, kTcpService, kProvenFlow, FlowTime{9}),
                                   snapshot, FlowTime{9}));
  }
  for (int i = 0; i < 100'000; ++i) {
    const FlowHash stranger = random.hash();
    REQUIRE(table.find(stranger) == FlowTable::kNowhere);
    REQUIRE_FALSE(table.peek(stranger));
  }
  // An all-zero hash has an all-zero tag, which must not be taken for a free place.
  CHECK(table.find(FlowHash{}) == FlowTable::kNowhere);
}

TEST_CASE("idle times stay right while the 22 bits of last seen wrap again and again") {
  const Snapshot snapshot = two_services();
  FlowCounts counts;
  FlowTable table(64, -1, counts);
  const FlowHash hash{.low64 = 1234567, .high64 = 89};
  FlowTime now = 1s;
  REQUIRE(
      table.insert(hash, entry_of(hash, kBackendA, kTcpService, kProvenFlow, now), snapshot, now));
  // 2 h between packets for 60 days: five wraps of 12.1 days.
  for (FlowTime last = now; now < FlowTime{60 * 24h}; last = now) {
    now += FlowTime{2h};
    table.sweep(snapshot, now, table.capacity());
    const auto place = table.find(hash);
    REQUIRE(place != FlowTable::kNowhere);
    const FlowEntry entry = table.at(place);
    REQUIRE(entry.idle(now) == now - last);
    FlowEntry after = entry;
    after.set_last_seen(now);
    table.update(place, entry, after);
  }
}

TEST_CASE("the longest timeout holds to its last tick and no further, wherever the clock stands") {
  Snapshot snapshot = two_services();
  snapshot.services[0].timeouts.established = kMaxFlowTimeout;
  FlowCounts counts;
  FlowTable table(64, -1, counts);
  const FlowHash hash{.low64 = 5, .high64 = 6};
  for (FlowTime start{0}; start < FlowTime{40 * 24h}; start += FlowTime{31h} + FlowTime{3}) {
    REQUIRE(table.insert(hash, entry_of(hash, kBackendA, kTcpService, kProvenFlow, start), snapshot,
                         start));
    table.sweep(snapshot, start + kMaxFlowTimeout - FlowTime{1}, table.capacity());
    REQUIRE(table.find(hash) != FlowTable::kNowhere);
    // Even a sweep that comes a week late is before the wrap.
    table.sweep(snapshot, start + kMaxFlowTimeout + FlowTime{7 * 24h}, table.capacity());
    REQUIRE(table.find(hash) == FlowTable::kNowhere);
  }
}

TEST_CASE("an age stops at 145 days instead of beginning again after 194") {
  const Snapshot snapshot = two_services();
  FlowCounts counts;
  FlowTable table(64, -1, counts);
  const FlowHash hash{.low64 = 77, .high64 = 78};
  const FlowTime start = 3s;
  REQUIRE(table.insert(hash, entry_of(hash, kBackendA, kTcpService, kProvenFlow, start), snapshot,
                       start));
  for (FlowTime now = start; now < FlowTime{500 * 24h}; now += FlowTime{2h}) {
    const auto place = table.find(hash);
    REQUIRE(place != FlowTable::kNowhere);
    const FlowEntry entry = table.at(place);
    FlowEntry after = entry;
    after.set_last_seen(now);
    table.update(place, entry, after);
    table.sweep(snapshot, now, table.capacity());
    REQUIRE(table.at(place).age(now) == std::min(now - start, FlowEntry::kOldest));
  }
}

TEST_CASE("the sweep drops what expired and what is gone, and counts whole passes") {
  Snapshot snapshot = two_services();
  FlowCounts counts;
  FlowTable table(400, -1, counts);
  Random random(5);
  std::vector<FlowHash> hashes;
  for (int i = 0; i < 90; ++i) {
    hashes.push_back(random.hash());
    const BackendNumber backend{static_cast<std::uint16_t>(i % 3)};
    const ServiceNumber service{static_cast<std::uint16_t>(i % 2)};
    REQUIRE(table.insert(hashes.back(),
                         entry_of(hashes.back(), backend, service, kEstablished, FlowTime{0}),
                         snapshot, FlowTime{0}));
  }
  SECTION("a pass in small steps looks at each entry once") {
    for (int i = 0; i < 99; ++i) table.sweep(snapshot, FlowTime{121s}, FlowTable::kWays);
    CHECK(counters_of(table).sweeps == 0);
    table.sweep(snapshot, FlowTime{121s}, FlowTable::kWays);
    CHECK(counters_of(table).sweeps == 1);
    CHECK(counters_of(table).expired == 45);  // the UDP ones
    CHECK(counters_of(table).established == 45);
  }
  SECTION("one call is at most one pass") {
    table.sweep(snapshot, FlowTime{1}, 1'000'000);
    CHECK(counters_of(table).sweeps == 1);
  }
  SECTION("a removed backend") {
    snapshot.backends[1].present = false;
    table.sweep(snapshot, FlowTime{1}, table.capacity());
    CHECK(counters_of(table).gone == 30);
    CHECK(counts.backend(kBackendB).read().active == 0);
    CHECK(counts.backend(kBackendA).read().active == 30);
  }
  SECTION("a removed service") {
    snapshot.services[0].present = false;
    table.sweep(snapshot, FlowTime{1}, table.capacity());
    CHECK(counters_of(table).gone == 45);
    CHECK(counts.service(kTcpService).read().active == 0);
  }
  check_identity(table);
}

TEST_CASE("a sweep leaves nothing behind although entries move while it passes") {
  // The removed backend's entries must be gone after one pass that began after the removal, or
  // their number would be given to another backend too early.
  Snapshot snapshot = two_services();
  FlowCounts counts;
  FlowTable table(400, -1, counts);
  Random random(6);
  const auto fill = [&](BackendNumber backend, int flows) {
    for (int i = 0; i < flows; ++i) {
      const FlowHash hash = random.hash();
      static_cast<void>(table.insert(hash,
                                     entry_of(hash, backend, kTcpService, kProvenFlow, FlowTime{0}),
                                     snapshot, FlowTime{0}));
    }
  };
  fill(kBackendB, 330);
  const auto relocations = counters_of(table).relocations;
  snapshot.backends[1].present = false;
  for (int i = 0; i < 100; ++i) {
    fill(kBackendA, 3);
    table.sweep(snapshot, FlowTime{1}, FlowTable::kWays);
  }
  CHECK(counters_of(table).sweeps == 1);
  CHECK(counters_of(table).relocations > relocations);
  CHECK(counts.backend(kBackendB).read().active == 0);
}

}  // namespace holdfast

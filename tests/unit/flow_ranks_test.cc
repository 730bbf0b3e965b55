// SPDX-License-Identifier: Apache-2.0
// Whose place a newcomer may take, and what a service may have of a table. In a table of one bucket
// every entry competes with every other.
#include <initializer_list>
#include <vector>

#include "lb/flow/flow_table.h"
#include "tests/catch.h"
#include "tests/unit/flow_fixture.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

constexpr FlowLife kEmbryonic{FlowState::embryonic, 0};
constexpr FlowLife kEstablished{FlowState::established, 1};
constexpr FlowLife kProvenFlow{FlowState::established, FlowLife::kProven};
constexpr FlowLife kClosing{FlowState::closing_rst, FlowLife::kProven};

constexpr FlowTime kNow = 1h;

/// Four entries, one bucket.
class OneBucket {
 public:
  struct Resident {
    FlowLife life;
    FlowTime idle;
    ServiceNumber service = kTcpService;
  };

  OneBucket(std::initializer_list<Resident> residents) {
    for (Service& service : snapshot.services) service.embryonic_share = 1.0;
    for (const Resident& resident : residents)
      hashes_.push_back(add(resident.service, resident.life, kNow - resident.idle));
  }

  /// True: it was recorded.
  bool newcomer(ServiceNumber service = kTcpService, FlowLife life = kEmbryonic) {
    return table.find(add(service, life, kNow)) != FlowTable::kNowhere;
  }
  bool has(std::size_t resident) const {
    return table.find(hashes_[resident]) != FlowTable::kNowhere;
  }

  Snapshot snapshot = two_services();
  FlowCounts counts;
  FlowTable table{4, -1, counts};

 private:
  FlowHash add(ServiceNumber service, FlowLife life, FlowTime seen) {
    const FlowHash hash = random_.hash();
    static_cast<void>(
        table.insert(hash, entry_of(hash, kBackendA, service, life, seen), snapshot, seen));
    return hash;
  }

  Random random_{3};
  std::vector<FlowHash> hashes_;
};

}  // namespace

TEST_CASE("a newcomer takes a free place before anybody's") {
  OneBucket bucket{{kEmbryonic, 19s}, {kEmbryonic, 18s}, {kEstablished, 1h}};
  CHECK(bucket.newcomer());
  CHECK(bucket.has(0));
  CHECK(bucket.has(1));
  CHECK(bucket.has(2));
}

TEST_CASE("a newcomer takes an expired place before an embryonic one") {
  OneBucket bucket{{kEmbryonic, 19s}, {kClosing, 60s}, {kEmbryonic, 1s}, {kEstablished, 1h}};
  CHECK(bucket.newcomer());
  CHECK_FALSE(bucket.has(1));
  CHECK(bucket.has(0));
  CHECK(counters_of(bucket.table).expired == 1);
}

TEST_CASE("a newcomer takes the place of an entry whose backend is gone") {
  OneBucket bucket{{kProvenFlow, 0s}, {kProvenFlow, 0s}, {kProvenFlow, 0s}, {kProvenFlow, 0s}};
  bucket.snapshot.backends[index_of(kBackendA)].present = false;
  CHECK(bucket.newcomer());
  CHECK(counters_of(bucket.table).gone == 1);
}

TEST_CASE("a newcomer takes the oldest embryonic entry's place before a stale one's") {
  OneBucket bucket{{kEstablished, 1h}, {kEmbryonic, 5s}, {kEmbryonic, 12s}, {kEmbryonic, 7s}};
  CHECK(bucket.newcomer());
  CHECK_FALSE(bucket.has(2));
  CHECK(bucket.has(0));
  CHECK(counters_of(bucket.table).evicted_embryonic == 1);
}

TEST_CASE("a newcomer takes the oldest stale entry's place where there is no embryonic one") {
  OneBucket bucket{{kEstablished, 90s}, {kEstablished, 2h}, {kProvenFlow, 2h}, {kEstablished, 59s}};
  CHECK(bucket.newcomer());
  CHECK_FALSE(bucket.has(1));
  CHECK(bucket.has(0));
  CHECK(bucket.has(2));
  CHECK(bucket.has(3));
  CHECK(counters_of(bucket.table).evicted_stale == 1);
}

TEST_CASE("closing, established and proven entries keep their places; the newcomer is counted") {
  OneBucket bucket{{kClosing, 59s}, {kEstablished, 59s}, {kProvenFlow, 2h}, {kProvenFlow, 0s}};
  for (int i = 0; i < 1000; ++i) CHECK_FALSE(bucket.newcomer());
  for (std::size_t i = 0; i < 4; ++i) CHECK(bucket.has(i));
  CHECK(counters_of(bucket.table).not_recorded == 1000);
}

TEST_CASE("at max_share a service gets no free place and nobody else's, only its own weakest") {
  OneBucket bucket{{kEmbryonic, 9s}, {kEmbryonic, 19s, kUdpService}, {kEstablished, 1h}};
  bucket.snapshot.services[0].max_share = 0.5;  // of four: two, and it has two
  CHECK(bucket.newcomer());
  CHECK_FALSE(bucket.has(0));
  CHECK(bucket.has(1));
  CHECK(bucket.has(2));
  // A stale entry of its own is not taken: at the limit only expired and embryonic ones are.
  OneBucket full{{kEstablished, 1h}, {kEstablished, 1h}};
  full.snapshot.services[0].max_share = 0.5;
  CHECK_FALSE(full.newcomer());
  CHECK(counters_of(full.table).not_recorded == 1);
  // Another service is not concerned.
  CHECK(full.newcomer(kUdpService));
}

TEST_CASE("at embryonic_share only embryonic newcomers are limited") {
  OneBucket bucket{{kEmbryonic, 9s}, {kProvenFlow, 0s}};
  bucket.snapshot.services[0].embryonic_share = 0.25;
  CHECK(bucket.newcomer());
  CHECK_FALSE(bucket.has(0));
  CHECK(counters_of(bucket.table).embryonic == 1);
  CHECK(bucket.newcomer(kTcpService, kEstablished));  // a copy from another worker's table
  CHECK(counters_of(bucket.table).established == 2);
  CHECK(counters_of(bucket.table).embryonic == 1);
}

TEST_CASE(
    "at a limit an expired entry of the same service makes room, another service's does not") {
  OneBucket bucket{{kProvenFlow, 3h}, {kProvenFlow, 121s, kUdpService}, {kProvenFlow, 0s}};
  bucket.snapshot.services[0].max_share = 0.5;
  CHECK(bucket.newcomer());
  CHECK_FALSE(bucket.has(0));
  CHECK(bucket.has(1));
}

TEST_CASE("a flood takes a quarter of the table and no flow that carries data") {
  constexpr std::uint64_t kCapacity = 8000;
  const Snapshot snapshot = two_services();
  FlowCounts counts;
  FlowTable table(kCapacity, -1, counts);
  Random random(8);
  std::vector<FlowHash> carrying;
  for (std::uint64_t i = 0; i < kCapacity / 2; ++i) {
    carrying.push_back(random.hash());
    REQUIRE(table.insert(carrying.back(),
                         entry_of(carrying.back(), kBackendA, kTcpService, kProvenFlow, kNow),
                         snapshot, kNow));
  }
  for (std::uint64_t i = 0; i < 20 * kCapacity; ++i) {
    const FlowTime now = kNow + FlowTime{static_cast<std::int64_t>(i / 1000)};
    const FlowHash hash = random.hash();
    static_cast<void>(
        table.insert(hash, entry_of(hash, kBackendB, kTcpService, kEmbryonic, now), snapshot, now));
    REQUIRE(counters_of(table).embryonic <= kCapacity / 4);
  }
  CHECK(counters_of(table).embryonic == kCapacity / 4);
  for (const FlowHash& hash : carrying) REQUIRE(table.find(hash) != FlowTable::kNowhere);
}

namespace {

/// A table that is full: so many proven flows of the TCP service, the rest embryonic ones.
class FullTable {
 public:
  static constexpr std::uint64_t kCapacity = 8000;

  explicit FullTable(std::uint64_t proven, double embryonic_share = 1.0) {
    for (Service& service : snapshot.services) service.embryonic_share = embryonic_share;
    while (carrying.size() < proven) {
      const FlowHash hash = random_.hash();
      if (insert(hash, kProvenFlow)) carrying.push_back(hash);
    }
    for (std::uint64_t i = 0; i < 10 * kCapacity; ++i)
      static_cast<void>(insert(random_.hash(), kEmbryonic));
  }

  /// Of 1000 newcomers so many are recorded.
  int record_newcomers() {
    int recorded = 0;
    for (int i = 0; i < 1000; ++i) recorded += insert(random_.hash(), kEmbryonic);
    return recorded;
  }
  void check_nobody_is_lost() {
    for (const FlowHash& hash : carrying) REQUIRE(table.find(hash) != FlowTable::kNowhere);
    CHECK(counters_of(table).established == carrying.size());
    check_identity(table);
  }

  Snapshot snapshot = two_services();
  FlowCounts counts;
  FlowTable table{kCapacity, -1, counts};
  std::vector<FlowHash> carrying;

 private:
  bool insert(const FlowHash& hash, FlowLife life) {
    return table.insert(hash, entry_of(hash, kBackendA, kTcpService, life, kNow), snapshot, kNow);
  }

  Random random_{9};
};

}  // namespace

TEST_CASE("in a flood a newcomer finds a place although both its buckets carry only data") {
  // Of five places four hold proven flows, so eight of them at once in one newcomer of six.
  FullTable full(FullTable::kCapacity / 5 * 4);
  CHECK(full.record_newcomers() >= 995);
  CHECK(counters_of(full.table).embryonic == FullTable::kCapacity / 5);
  full.check_nobody_is_lost();
}

TEST_CASE("at embryonic_share too a newcomer finds a place of its service beyond its buckets") {
  FullTable full(FullTable::kCapacity / 2, 0.25);
  REQUIRE(counters_of(full.table).embryonic == FullTable::kCapacity / 4);
  CHECK(full.record_newcomers() >= 995);
  CHECK(counters_of(full.table).embryonic == FullTable::kCapacity / 4);
  full.check_nobody_is_lost();
}

TEST_CASE(
    "beyond its buckets a newcomer takes no place of another service than its own at a limit") {
  FullTable full(FullTable::kCapacity / 2, 0.25);
  const auto before = full.counts.service(kTcpService).read().embryonic;
  full.snapshot.services[1].max_share = 1e-9;  // one entry
  Random random(10);
  for (int i = 0; i < 1000; ++i) {
    const FlowHash hash = random.hash();
    static_cast<void>(full.table.insert(
        hash, entry_of(hash, kBackendA, kUdpService, kEmbryonic, kNow), full.snapshot, kNow));
  }
  CHECK(full.counts.service(kUdpService).read().embryonic == 1);
  CHECK(full.counts.service(kTcpService).read().embryonic == before);
}

TEST_CASE("where few entries are embryonic nobody is moved for a newcomer in vain") {
  FullTable full(FullTable::kCapacity / 100 * 96);
  const auto before = counters_of(full.table);
  REQUIRE(before.embryonic * 16 < FullTable::kCapacity);
  static_cast<void>(full.record_newcomers());
  CHECK(counters_of(full.table).relocations == before.relocations);
  full.check_nobody_is_lost();
}

}  // namespace holdfast

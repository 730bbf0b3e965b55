// SPDX-License-Identifier: Apache-2.0
// The flow table against a plain map over random operations and simulated time, the clock's wraps,
// and the newcomer's rule rank by rank.
#include "lb/flow/flow_table.h"

#include <unordered_map>
#include <utility>
#include <vector>

#include "lb/flow/flow_life.h"
#include "tests/catch.h"
#include "tests/unit/flow_fixture.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

constexpr FlowLife kEmbryonic{FlowState::embryonic, 0};
constexpr FlowLife kEstablished{FlowState::established, 0};
constexpr FlowLife kProvenFlow{FlowState::established, FlowLife::kProven};
constexpr FlowLife kClosing{FlowState::closing_fin, FlowLife::kProven};

/// Every entry that was inserted is still there or left in one way.
void check_identity(const FlowTable& table) {
  const FlowTableCounters c = counters_of(table);
  CHECK(c.inserted == c.embryonic + c.established + c.closing + c.expired + c.evicted_embryonic +
                          c.evicted_stale + c.gone + c.handed_over);
}

/// The table and the map of what must be in it.
class Twin {
 public:
  explicit Twin(std::uint64_t capacity, std::uint64_t seed)
      : table_(capacity, -1, counts_), random_(seed) {}

  void step() {
    switch (random_.below(8)) {
      case 0:
      case 1:
        begin_flow();
        break;
      case 2:
        hand_over();
        break;
      case 3:
        now_ += FlowTime{static_cast<std::int64_t>(random_.below(8))};
        break;
      case 4:
        table_.sweep(snapshot_, now_, random_.below(64));
        break;
      default:
        meet();
        break;
    }
  }

  void compare() {
    table_.sweep(snapshot_, now_, table_.capacity());  // all that expired is gone
    std::unordered_map<std::size_t, FlowCounters> backends;
    std::unordered_map<std::size_t, FlowCounters> services;
    FlowCounters all;
    for (const FlowHash& hash : known_) {
      const auto place = table_.find(hash);
      const Flow* const flow = alive(hash);
      REQUIRE((place != FlowTable::kNowhere) == (flow != nullptr));
      if (flow == nullptr) continue;
      const FlowEntry entry = table_.at(place);
      REQUIRE(entry.backend() == flow->backend);
      REQUIRE(entry.service() == flow->service);
      REQUIRE(entry.life() == flow->life);
      REQUIRE(entry.idle(now_) == now_ - flow->last);
      REQUIRE(entry.age(now_) == now_ - flow->first);
      for (FlowCounters* const counters :
           {&all, &backends[index_of(flow->backend)], &services[index_of(flow->service)]})
        ++gauge(*counters, flow->life);
    }
    const FlowTableCounters read = counters_of(table_);
    CHECK(std::cmp_equal(read.embryonic, all.embryonic));
    CHECK(std::cmp_equal(read.established, all.active));
    CHECK(std::cmp_equal(read.closing, all.closing));
    CHECK(read.not_recorded == 0);
    check_identity(table_);
    for (const auto number : {kBackendA, kBackendB, kBackendC})
      CHECK(same(counts_.backend(number).read(), backends[index_of(number)]));
    for (const auto number : {kTcpService, kUdpService})
      CHECK(same(counts_.service(number).read(), services[index_of(number)]));
  }

  [[nodiscard]] std::uint64_t relocations() const { return counters_of(table_).relocations; }

 private:
  struct Flow {
    BackendNumber backend;
    ServiceNumber service;
    FlowLife life;
    FlowTime first;
    FlowTime last;
  };

  static std::int64_t& gauge(FlowCounters& counters, FlowLife life) {
    if (life.state == FlowState::embryonic) return counters.embryonic;
    return life.closing() ? counters.closing : counters.active;
  }
  static bool same(const FlowCounters& a, const FlowCounters& b) {
    return a.active == b.active && a.embryonic == b.embryonic && a.closing == b.closing;
  }

  /// Null when the map does not have it, or no longer.
  Flow* alive(const FlowHash& hash) {
    const auto found = map_.find(hash.high64);
    if (found == map_.end()) return nullptr;
    const Flow& flow = found->second;
    if (!is_expired(flow.life.state, now_ - flow.last, *snapshot_.service(flow.service)))
      return &found->second;
    map_.erase(found);
    return nullptr;
  }

  BackendNumber any_backend() {
    return random_.one_of(std::vector{kBackendA, kBackendB, kBackendC});
  }
  ServiceNumber any_service() { return random_.one_of(std::vector{kTcpService, kUdpService}); }
  FlowLife any_life() {
    return random_.one_of(std::vector{kEmbryonic, kEstablished, kProvenFlow, kClosing});
  }

  /// At most so many flows that the table is never full: none may be turned away.
  void begin_flow() {
    if (known_.size() < 600) known_.push_back(random_.hash());
    const FlowHash hash = random_.one_of(known_);
    if (alive(hash) != nullptr) return;
    // As pick_backend does with an entry that the sweep has not come to.
    if (const auto place = table_.find(hash); place != FlowTable::kNowhere) table_.expire(place);
    const Flow flow{any_backend(), any_service(), any_life(), now_, now_};
    map_[hash.high64] = flow;
    REQUIRE(table_.insert(hash, entry_of(hash, flow.backend, flow.service, flow.life, now_),
                          snapshot_, now_));
  }

  /// A packet: changes life, backend or service, or only the time.
  void meet() {
    if (known_.empty()) return;
    const FlowHash hash = random_.one_of(known_);
    Flow* const flow = alive(hash);
    if (flow == nullptr) return;
    flow->last = now_;
    if (random_.below(2) == 0) flow->life = any_life();
    if (random_.below(8) == 0) flow->backend = any_backend();
    if (random_.below(8) == 0) flow->service = any_service();
    const auto place = table_.find(hash);
    REQUIRE(place != FlowTable::kNowhere);
    const FlowEntry before = table_.at(place);
    FlowEntry after = before;
    after.set_life(flow->life);
    after.set_backend(flow->backend);
    after.set_service(flow->service);
    after.set_last_seen(now_);
    table_.update(place, before, after);
  }

  void hand_over() {
    if (known_.empty()) return;
    const FlowHash hash = random_.one_of(known_);
    const BackendNumber told = any_backend();
    const Flow* const flow = alive(hash);
    table_.hand_over(hash, told);
    if (flow != nullptr && flow->backend == told) map_.erase(hash.high64);
  }

  Snapshot snapshot_ = two_services();
  FlowCounts counts_;
  FlowTable table_;
  Random random_;
  FlowTime now_{1h};
  std::vector<FlowHash> known_;                  // every flow that ever was
  std::unordered_map<std::uint64_t, Flow> map_;  // by high64
};

}  // namespace

TEST_CASE("a flow table and a plain map agree over random operations") {
  // 190 buckets is no power of two; the flows that live at one time fill more than half of them, so
  // buckets overflow and entries are relocated.
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    Twin twin(760, seed);
    for (int round = 0; round < 60; ++round) {
      for (int i = 0; i < 500; ++i) twin.step();
      twin.compare();
    }
    CHECK(twin.relocations() > 0);
  }
}

TEST_CASE("every capacity works, and an entry's other bucket leads back to the first") {
  const Snapshot snapshot = two_services();
  for (const std::uint64_t capacity : {1, 4, 5, 12, 100, 1000, 4096, 4100}) {
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

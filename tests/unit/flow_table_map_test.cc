// SPDX-License-Identifier: Apache-2.0
// The flow table against a plain map over random operations and simulated time.
#include <unordered_map>
#include <utility>
#include <vector>

#include "lb/flow/flow_life.h"
#include "lb/flow/flow_table.h"
#include "tests/catch.h"
#include "tests/unit/flow_fixture.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

constexpr FlowLife kEmbryonic{FlowState::embryonic, 0};
constexpr FlowLife kEstablished{FlowState::established, 0};
constexpr FlowLife kProvenFlow{FlowState::established, FlowLife::kProven};
constexpr FlowLife kClosing{FlowState::closing_fin, FlowLife::kProven};

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
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U}) {
    Twin twin(760, seed);
    for (int round = 0; round < 60; ++round) {
      for (int i = 0; i < 500; ++i) twin.step();
      twin.compare();
    }
    CHECK(twin.relocations() > 0);
  }
}

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// How full a flow table gets before it turns newcomers away, and the longest that a packet can wait
// behind the table's own work: the burst of a sweep, and an insert that looks for room in vain.
#include <fmt/format.h>
#include <rte_cycles.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "bench/groups.h"
#include "lb/flow/flow_context.h"
#include "lb/worker.h"

namespace holdfast::bench {
namespace {

using namespace std::chrono_literals;

constexpr ServiceNumber kService{0};
constexpr std::uint64_t kCapacity = 1 << 20;
constexpr FlowLife kProvenFlow{FlowState::established, FlowLife::kProven};
constexpr FlowLife kEmbryonic{FlowState::embryonic, 0};

/// Equidistributed 64-bit numbers (splitmix64): as good as a keyed hash for where flows lie.
class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : state_(seed * 0xd1342543de82ef95u) {}
  std::uint64_t next() {
    std::uint64_t x = state_ += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
  }
  FlowHash hash() {
    const std::uint64_t low = next();
    return {.low64 = low, .high64 = next()};
  }

 private:
  std::uint64_t state_;
};

Snapshot make_snapshot() {
  constexpr int kBackends = 100;
  Snapshot snapshot;
  snapshot.services = {Service{.present = true, .embryonic_share = 1.0}};
  for (int i = 0; i < kBackends; ++i)
    snapshot.backends.push_back(Backend{
        .state = BackendState::eligible, .present = true, .keeps_tcp = true, .keeps_udp = true});
  return snapshot;
}

FlowEntry entry_of(const FlowHash& hash, FlowLife life, FlowTime now) {
  const auto backend = static_cast<BackendNumber>(hash.low64 % 100);
  return FlowEntry::make(flow_tag(hash), backend, kService, life, false, now);
}

FlowTableCounters counters_of(const FlowTable& table) {
  FlowTableCounters counters;
  table.read_into(counters);
  return counters;
}

/// Offers proven flows until as many as `fill` of the capacity were offered.
class Filler {
 public:
  Filler(FlowTable& table, const Snapshot& snapshot, std::uint64_t seed)
      : table_(table), snapshot_(snapshot), numbers_(seed) {}

  void offer_up_to(double fill) {
    for (; static_cast<double>(offered_) < fill * kCapacity; ++offered_) {
      const FlowHash hash = numbers_.hash();
      static_cast<void>(
          table_.insert(hash, entry_of(hash, kProvenFlow, FlowTime{0}), snapshot_, FlowTime{0}));
    }
  }
  [[nodiscard]] double offered() const { return static_cast<double>(offered_); }

 private:
  FlowTable& table_;
  const Snapshot& snapshot_;
  Numbers numbers_;
  std::uint64_t offered_ = 0;
};

void add_fill_curve(Report& report, const Snapshot& snapshot, unsigned tables) {
  constexpr unsigned kPercents[] = {50, 60, 70, 75, 80, 85, 90, 95};
  std::map<unsigned, std::vector<double>> refused;
  std::map<unsigned, std::vector<double>> moves;
  for (unsigned seed = 1; seed <= tables; ++seed) {
    FlowCounts counts;
    FlowTable table(kCapacity, -1, counts);
    Filler filler(table, snapshot, seed);
    for (const unsigned percent : kPercents) {
      filler.offer_up_to(percent / 100.0);
      const FlowTableCounters read = counters_of(table);
      refused[percent].push_back(static_cast<double>(read.not_recorded) / filler.offered());
      moves[percent].push_back(static_cast<double>(read.relocations) / filler.offered());
    }
  }
  for (const unsigned percent : kPercents) {
    const std::string name = fmt::format("fill/offered {} %/not recorded", percent);
    Row row{name, Spread::of(refused[percent]), "share"};
    if (percent == 85) row.goal = at_most(1e-5);
    if (percent == 90) row.goal = at_most(1e-3);
    report.add(row);
    report.add({fmt::format("fill/offered {} %/moves an insert", percent),
                Spread::of(moves[percent]), "moves"});
  }
}

/// Nanoseconds a tick of the processor's counter, which runs evenly on all machines that DPDK runs
/// on; measured, since rte_get_tsc_hz() needs the EAL.
double nanoseconds_a_tick() {
  const auto start = std::chrono::steady_clock::now();
  const std::uint64_t ticks = rte_rdtsc_precise();
  while (std::chrono::steady_clock::now() - start < 50ms) {
  }
  const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
  return spent.count() / static_cast<double>(rte_rdtsc_precise() - ticks);
}

/// How long single calls took, nanoseconds.
class Latencies {
 public:
  /// `call()` says whether the time that it took is one that counts.
  template <class Call>
  void time(Call call) {
    const std::uint64_t start = rte_rdtsc_precise();
    const bool counts = call();
    const std::uint64_t end = rte_rdtsc_precise();
    if (counts) ticks_.push_back(static_cast<double>(end - start));
  }
  [[nodiscard]] std::size_t count() const { return ticks_.size(); }
  void add_to(Report& report, const std::string& name) {
    if (ticks_.empty()) return;
    std::sort(ticks_.begin(), ticks_.end());
    const double tick = nanoseconds_a_tick();
    for (const auto& [what, share] : {std::pair{"median", 0.5}, {"p99", 0.99}, {"p99.9", 0.999}})
      report.add(
          fmt::format("{}/{}", name, what),
          tick * ticks_[static_cast<std::size_t>(share * static_cast<double>(ticks_.size()))],
          "ns");
    // The longest of all is as long as the kernel or the hypervisor had other work.
    report.add(name + "/max", tick * ticks_.back(), "ns");
  }

 private:
  std::vector<double> ticks_{};
};

/// One worker under load, a full burst every 3.2 us (10 Mpps). What is due for sweeping becomes so
/// every 250 ms; the polls that then follow are timed, with a burst's lookups between them.
void add_sweep(Report& report, const Snapshot& snapshot, unsigned passes) {
  constexpr std::chrono::nanoseconds kPoll{3200};
  constexpr std::uint64_t kPolls = kCapacity / 40 / Worker::kSweepBusy + 1;
  FlowContext flows({.capacity = kCapacity});
  Filler(flows.table, snapshot, 1).offer_up_to(0.8);
  Numbers numbers(2);
  Latencies burst;
  std::vector<double> seconds;
  Instant began{0};
  for (Instant tick{250ms}; seconds.size() < passes; tick += 250ms) {
    for (std::uint64_t poll = 0; poll < kPolls; ++poll) {
      const Instant time = tick + poll * kPoll;
      burst.time([&] {
        flows.tend(snapshot, time, Worker::kSweepBusy);
        return true;
      });
      for (unsigned packet = 0; packet < 32; ++packet)
        keep(static_cast<std::uint64_t>(flows.table.find(numbers.hash())));
    }
    if (flows.table_counters().sweeps <= seconds.size()) continue;
    seconds.push_back(std::chrono::duration<double>(tick - began).count());
    began = tick;
  }
  burst.add_to(report, fmt::format("sweep/{} places, four fifths alive", Worker::kSweepBusy));
  report.add({"sweep/one pass", Spread::of(seconds), "s simulated"});
}

/// The same where each entry that the burst meets has expired.
void add_sweep_of_the_dead(Report& report, const Snapshot& snapshot) {
  FlowCounts counts;
  FlowTable table(kCapacity, -1, counts);
  Filler(table, snapshot, 1).offer_up_to(0.8);
  const FlowTime later = snapshot.services[0].timeouts.established;
  Latencies burst;
  for (std::uint64_t at = 0; at < kCapacity; at += Worker::kSweepBusy)
    burst.time([&] {
      table.sweep(snapshot, later, Worker::kSweepBusy);
      return true;
    });
  burst.add_to(report, fmt::format("sweep/{} places, four fifths expired", Worker::kSweepBusy));
}

/// `count` inserts that find no place, of strangers: nothing that they look at is in a cache near
/// by.
void add_vain_inserts(Report& report, const std::string& name, FlowTable& table,
                      const Snapshot& snapshot, std::size_t count) {
  Numbers numbers(99);
  Latencies latencies;
  for (std::uint64_t tries = 0; latencies.count() < count && tries < 20 * kCapacity; ++tries) {
    const FlowHash hash = numbers.hash();
    bool recorded = false;
    latencies.time([&] {
      recorded = table.insert(hash, entry_of(hash, kEmbryonic, FlowTime{0}), snapshot, FlowTime{0});
      return !recorded;
    });
    if (recorded) table.expire(table.find(hash));  // the table does not get fuller
  }
  latencies.add_to(report, name);
}

void add_worst_inserts(Report& report, const Snapshot& snapshot, std::size_t count) {
  FlowCounts counts;
  FlowTable table(kCapacity, -1, counts);
  Filler filler(table, snapshot, 1);
  filler.offer_up_to(0.945);
  add_vain_inserts(report, "insert/relocation in vain, 94 % proven", table, snapshot, count);
  filler.offer_up_to(1.5);
  add_vain_inserts(report, "insert/in vain, all proven", table, snapshot, count);
}

}  // namespace

void run_fill(Report& report, const Options& options) {
  const Snapshot snapshot = make_snapshot();
  add_fill_curve(report, snapshot, options.quick ? 5 : 21);
  add_sweep(report, snapshot, options.quick ? 3 : 10);
  add_sweep_of_the_dead(report, snapshot);
  add_worst_inserts(report, snapshot, options.quick ? 2'000 : 20'000);
}

}  // namespace holdfast::bench

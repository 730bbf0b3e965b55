// SPDX-License-Identifier: Apache-2.0
// What placing a packet costs: the stage pick_backend alone, with the real flow table, beside a
// bare loop over the same hashes (one bucket of 64 bytes prefetched, four tags compared, nothing
// else).
//   hit        ACKs of established flows, table 80 % full, in an order that no cache likes
//   new        SYNs of unknown flows on a table that is full, so that each evicts or is turned away
//   miss       RSTs of unknown flows: both buckets are looked through, Maglev answers, no insert
// Nanoseconds of CPU a packet: median of 7 slices (min-max), slices of all rows in turn.
// Run: build/bench/flow_table_bench (about a minute).
#include <fmt/core.h>
#include <time.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "lb/flow/flow_context.h"
#include "lb/stage/stages.h"

using namespace holdfast;

namespace {

constexpr ServiceNumber kService{0};
constexpr std::uint64_t kSlice = 1 << 20;  // packets

double cpu_nanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

/// A stand-in for XXH3 that costs next to nothing (splitmix64's finaliser).
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}
FlowHash hash_of(std::uint64_t flow) {
  return {.low64 = mix(flow + 1), .high64 = mix(flow ^ 0xa5a5a5a5a5a5a5a5u)};
}

Snapshot make_snapshot() {
  constexpr std::uint16_t kBackends = 100;
  Snapshot snapshot;
  snapshot.services = {Service{.present = true}};
  snapshot.services[0].embryonic_share = 1.0;
  auto slots = std::make_shared<SlotTable>();
  for (std::uint32_t slot = 0; slot < 65537; ++slot)
    slots->push_back(static_cast<BackendNumber>(mix(slot) % kBackends));
  snapshot.pools.resize(1);
  snapshot.pools[0].present = true;
  snapshot.pools[0].base = slots;
  snapshot.pools[0].effective = slots;
  for (std::uint16_t i = 0; i < kBackends; ++i)
    snapshot.backends.push_back(Backend{.state = BackendState::eligible,
                                        .present = true,
                                        .keeps_tcp = true,
                                        .keeps_udp = true,
                                        .next_hop_count = 1});
  return snapshot;
}

/// Numbers 0..count-1 in strides that visit each once.
class Order {
 public:
  explicit Order(std::uint64_t count) : count_(count), stride_(count / 3 * 2 + 1) {
    while (std::gcd(stride_, count_) != 1) ++stride_;
  }
  std::uint64_t next() {
    at_ += stride_;
    while (at_ >= count_) at_ -= count_;
    return at_;
  }

 private:
  std::uint64_t count_;
  std::uint64_t stride_;
  std::uint64_t at_ = 0;
};

/// A worker's share of the pipeline, and what it is fed with.
class Bed {
 public:
  Bed(std::uint64_t flows, const Snapshot& snapshot)
      : snapshot_(snapshot), context_({.capacity = flows * 5 / 4}), order_(flows) {
    for (Burst::Lane lane = 0; lane < Burst::kCapacity; ++lane) burst_->service[lane] = kService;
    for (std::uint64_t flow = 0; flow < flows; ++flow) {
      const FlowHash hash = hash_of(flow);
      const auto owner = (*snapshot.pools[0].effective)[maglev_slot(hash, 65537)];
      static_cast<void>(context_.table.insert(
          hash,
          FlowEntry::make(flow_tag(hash), owner, kService,
                          {FlowState::established, FlowLife::kProven}, false, FlowTime{0}),
          snapshot, FlowTime{0}));
    }
  }

  void hits() {
    run(TcpHeader::kAck, [&] { return hash_of(order_.next()); });
  }
  void new_flows() {
    run(TcpHeader::kSyn, [&] { return hash_of(stranger_++); });
  }
  void misses() {
    run(TcpHeader::kRst, [&] { return hash_of(stranger_++); });
  }
  FlowContext& context() { return context_; }

  std::uint64_t checksum = 0;

 private:
  template <class NextHash>
  void run(std::uint8_t flags, NextHash next_hash) {
    Burst& burst = *burst_;
    for (std::uint64_t done = 0; done < kSlice; done += Burst::kCapacity) {
      burst.size = Burst::kCapacity;
      for (Burst::Lane lane = 0; lane < burst.size; ++lane) {
        burst.verdict[lane] = {};
        burst.hash[lane] = next_hash();
        burst.packet[lane].tcp_flags = flags;
      }
      pick_backend(burst, snapshot_, context_, time_);
      checksum += index_of(burst.backend[0]);
    }
  }

  const Snapshot& snapshot_;
  FlowContext context_;
  Order order_;
  Instant time_{1};
  std::uint64_t stranger_ = std::uint64_t{1} << 40;
  std::unique_ptr<Burst> burst_ = std::make_unique<Burst>();
};

/// The bare loop: what no flow table can do without.
class Bare {
 public:
  explicit Bare(std::uint64_t flows) : buckets_(flows * 5 / 16 + 1), order_(flows) {
    words_.resize(buckets_ * 8 + 8);
    first_ = 8 - (reinterpret_cast<std::uintptr_t>(words_.data()) / 8) % 8;
    for (std::uint64_t flow = 0; flow < flows; ++flow) {
      const FlowHash hash = hash_of(flow);
      std::uint64_t* const bucket = bucket_of(hash);
      for (unsigned way = 0; way < 4; ++way)
        if (bucket[2 * way] == 0) {
          bucket[2 * way] = hash.high64 | 1;
          break;
        }
    }
  }

  void hits() {
    std::uint64_t* lanes[Burst::kCapacity];
    std::uint64_t tags[Burst::kCapacity];
    for (std::uint64_t done = 0; done < kSlice; done += Burst::kCapacity) {
      for (unsigned lane = 0; lane < Burst::kCapacity; ++lane) {
        const FlowHash hash = hash_of(order_.next());
        tags[lane] = hash.high64 | 1;
        lanes[lane] = bucket_of(hash);
        __builtin_prefetch(lanes[lane]);
      }
      for (unsigned lane = 0; lane < Burst::kCapacity; ++lane)
        for (unsigned way = 0; way < 4; ++way)
          if (lanes[lane][2 * way] == tags[lane]) {
            checksum += lanes[lane][2 * way + 1] + way;
            break;
          }
    }
  }

  std::uint64_t checksum = 0;

 private:
  std::uint64_t* bucket_of(const FlowHash& hash) {
    __extension__ using Wide = unsigned __int128;
    return words_.data() + first_ +
           static_cast<std::uint64_t>(Wide{hash.low64} * buckets_ >> 64) * 8;
  }

  std::uint64_t buckets_;
  Order order_;
  std::vector<std::uint64_t> words_;
  std::size_t first_ = 0;
};

struct Row {
  const char* name;
  std::function<void()> slice;
  std::vector<double> nanoseconds{};
};

void measure(std::vector<Row>& rows) {
  for (int round = 0; round < 8; ++round)
    for (Row& row : rows) {
      const double start = cpu_nanoseconds();
      row.slice();
      const double spent = (cpu_nanoseconds() - start) / static_cast<double>(kSlice);
      if (round > 0) row.nanoseconds.push_back(spent);  // the first one warms up
    }
  double bare = 0;
  for (Row& row : rows) {
    std::sort(row.nanoseconds.begin(), row.nanoseconds.end());
    const double median = row.nanoseconds[row.nanoseconds.size() / 2];
    if (bare == 0) bare = median;
    fmt::print("  {:<6} {:7.1f} ({:.1f}-{:.1f})  {:.2f} x bare\n", row.name, median,
               row.nanoseconds.front(), row.nanoseconds.back(), median / bare);
  }
}

void print_cost(std::uint64_t flows, const Snapshot& snapshot) {
  Bed bed(flows, snapshot);
  Bare bare(flows);
  fmt::print("{} flows, {}\n", flows, bed.context().table.memory_description());
  // The flows must be there to be hit, so new ones come last.
  std::vector<Row> rows{{"bare", [&] { bare.hits(); }},
                        {"hit", [&] { bed.hits(); }},
                        {"miss", [&] { bed.misses(); }}};
  measure(rows);
  const FlowTableCounters counters = bed.context().table_counters();
  fmt::print("  of {} ACKs {} hit\n", 8 * kSlice, counters.hits);
  std::vector<Row> floods{{"bare", [&] { bare.hits(); }}, {"new", [&] { bed.new_flows(); }}};
  measure(floods);
  fmt::print("  (checksum {})\n", (bed.checksum + bare.checksum) & 0xffff);
}

}  // namespace

int main() {
  const Snapshot snapshot = make_snapshot();
  for (const std::uint64_t flows : {1'000U, 100'000U, 1'000'000U}) print_cost(flows, snapshot);
}

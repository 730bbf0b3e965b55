// SPDX-License-Identifier: Apache-2.0
// How often a lookup takes another flow for its own: the formula of lb/flow/flow_table.h, shown
// with tags that are too short. A tag of 42 bits can not be seen to fail; one of which only t bits
// differ from flow to flow fails 2^(42-t) times as often.
#include <cmath>
#include <memory>
#include <vector>

#include "lb/flow/flow_context.h"
#include "tests/catch.h"
#include "tests/unit/flow_fixture.h"

namespace holdfast {
namespace {

constexpr FlowLife kProvenFlow{FlowState::established, FlowLife::kProven};
constexpr FlowTime kNow{40};
constexpr std::uint64_t kCapacity = 20'000;
constexpr int kLookups = 400'000;

/// Hashes whose tag has `bits` random bits and the same bits everywhere else. The bits that choose
/// the bucket are all random, as always.
class ShortTags {
 public:
  ShortTags(unsigned bits, std::uint64_t seed) : bits_(bits), random_(seed) {}
  FlowHash hash() {
    constexpr std::uint64_t kRest = 0x2aaaaaaaaaau;
    FlowHash hash = random_.hash();
    const std::uint64_t mask = (std::uint64_t{1} << bits_) - 1;
    const std::uint64_t tag = (flow_tag(hash) & mask) | (kRest & ~mask);
    hash.high64 = tag << 22 | (hash.high64 & ((1u << 22) - 1));
    return hash;
  }

 private:
  unsigned bits_;
  Random random_;
};

/// Every place of the table holds a flow: 8 entries are compared in a lookup that finds nothing.
void fill(FlowTable& table, ShortTags& tags, const Snapshot& snapshot) {
  std::uint64_t held = 0;
  for (std::uint64_t i = 0; held < table.capacity() && i < 100 * table.capacity(); ++i) {
    const FlowHash hash = tags.hash();
    held += table.insert(hash, entry_of(hash, kBackendA, kTcpService, kProvenFlow, kNow), snapshot,
                         kNow);
  }
  REQUIRE(held == table.capacity());
}

/// A count of rare events in kLookups tries is within five standard deviations of its mean.
void check_count(int hits, double probability) {
  const double expected = probability * kLookups;
  const double deviation = std::sqrt(expected * (1 - probability));
  INFO(hits << " wrong hits, expected " << expected << " +- " << deviation);
  CHECK(std::abs(hits - expected) < 5 * deviation);
}

}  // namespace

TEST_CASE("a full table takes a stranger for one of its flows in 8 of 2^t lookups") {
  const Snapshot snapshot = two_services();
  for (const unsigned bits : {9U, 11U, 13U, 15U}) {
    CAPTURE(bits);
    FlowCounts counts;
    FlowTable table(kCapacity, -1, counts);
    ShortTags tags(bits, bits);
    fill(table, tags, snapshot);
    int found = 0;
    int seen = 0;  // by another worker
    for (int i = 0; i < kLookups; ++i) {
      const FlowHash stranger = tags.hash();
      found += table.find(stranger) != FlowTable::kNowhere;
      seen += table.peek(stranger).has_value();
    }
    check_count(found, 8 / std::exp2(bits));
    CHECK(seen == found);
  }
}

TEST_CASE("over the tables of W workers, all full, it is W times as often") {
  constexpr unsigned kWorkers = 5;
  constexpr unsigned kBits = 14;
  const Snapshot snapshot = two_services();
  std::vector<std::unique_ptr<FlowContext>> workers;
  std::vector<FlowContext*> all;
  ShortTags tags(kBits, 3);
  for (unsigned i = 0; i < kWorkers; ++i) {
    workers.push_back(std::make_unique<FlowContext>(FlowOptions{.capacity = kCapacity}));
    all.push_back(workers.back().get());
    fill(all.back()->table, tags, snapshot);
  }
  FlowContext::connect(all);
  int hits = 0;
  for (int i = 0; i < kLookups; ++i) {
    const FlowHash stranger = tags.hash();
    hits += all[0]->table.find(stranger) != FlowTable::kNowhere ||
            all[0]->siblings.find(stranger).has_value();
  }
  check_count(hits, kWorkers * 8 / std::exp2(kBits));
}

TEST_CASE("a tag of 42 bits keeps wrong hits below 1e-9 over the tables of 128 workers, all full") {
  constexpr double kMostWorkers = 128;  // the most that a configuration may ask for
  CHECK(kMostWorkers * 8 / std::exp2(42) < 1e-9);
  CHECK(flow_tag(FlowHash{.high64 = ~std::uint64_t{0}}) == (std::uint64_t{1} << 42) - 1);
}

}  // namespace holdfast

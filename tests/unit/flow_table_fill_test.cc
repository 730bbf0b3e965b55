// SPDX-License-Identifier: Apache-2.0
// How full a flow table gets before it turns flows away, and whom it turns away first.
#include <memory>
#include <vector>

#include "lb/flow/flow_table.h"
#include "tests/catch.h"
#include "tests/unit/flow_fixture.h"

namespace holdfast {
namespace {

/// Flows that carry data: nobody may have their place.
FlowEntry carrying(const FlowHash& hash, FlowTime now) {
  return entry_of(hash, kBackendA, kTcpService, {FlowState::established, FlowLife::kProven}, now);
}

/// Offers as many proven flows as `fill` of the capacity; returns the share that was not recorded.
double share_refused_at(double fill, std::uint64_t seed) {
  constexpr std::uint64_t kCapacity = 1 << 20;
  FlowCounts counts;
  FlowTable table(kCapacity, -1, counts);
  const Snapshot snapshot = two_services();
  Random random(seed);
  const auto offered = static_cast<std::uint64_t>(fill * kCapacity);
  std::uint64_t refused = 0;
  for (std::uint64_t i = 0; i < offered; ++i) {
    const FlowHash hash = random.hash();
    if (!table.insert(hash, carrying(hash, FlowTime{1}), snapshot, FlowTime{1})) ++refused;
  }
  const FlowTableCounters read = counters_of(table);
  INFO("fill " << fill << ": " << refused << " of " << offered << " flows not recorded, "
               << static_cast<double>(read.relocations) / static_cast<double>(offered)
               << " moves an insert");
  CHECK(read.established == offered - refused);
  CHECK(read.not_recorded == refused);
  CHECK(read.inserted == offered - refused);
  // Cheap on average: most newcomers find a place at once, and most others with one move.
  CHECK(static_cast<double>(read.relocations) < 0.11 * static_cast<double>(offered));
  return static_cast<double>(refused) / static_cast<double>(offered);
}

}  // namespace

TEST_CASE("at 85 % fill a flow table turns away at most one flow in 100,000") {
  CHECK(share_refused_at(0.85, 1) <= 1e-5);
}

TEST_CASE("at 90 % fill a flow table turns away at most one flow in 1,000") {
  CHECK(share_refused_at(0.90, 2) <= 1e-3);
}

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// What the tests of lb/flow share: random flows, a small snapshot, short ways to build entries.
#pragma once

#include <random>

#include "lb/flow/flow_table.h"
#include "lib/model/snapshot.h"
#include "tests/catch.h"

namespace holdfast {

inline constexpr ServiceNumber kTcpService{0};
inline constexpr ServiceNumber kUdpService{1};
inline constexpr BackendNumber kBackendA{0};
inline constexpr BackendNumber kBackendB{1};
inline constexpr BackendNumber kBackendC{2};

/// Fixed seeds: a failure happens again.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  FlowHash hash() { return {.low64 = engine_(), .high64 = engine_()}; }
  std::uint64_t below(std::uint64_t limit) { return engine_() % limit; }
  template <class List>
  const auto& one_of(const List& list) {
    return list[below(list.size())];
  }

 private:
  std::mt19937_64 engine_;
};

/// A TCP and a UDP service on one pool of three eligible backends, without tables.
inline Snapshot two_services() {
  Snapshot snapshot;
  snapshot.services = {Service{.present = true, .protocol = IpProtocol::tcp},
                       Service{.present = true, .protocol = IpProtocol::udp}};
  snapshot.pools.resize(1);
  snapshot.pools[0].present = true;
  for (int i = 0; i < 3; ++i)
    snapshot.backends.push_back(Backend{
        .state = BackendState::eligible, .present = true, .keeps_tcp = true, .keeps_udp = true});
  return snapshot;
}

inline FlowEntry entry_of(const FlowHash& hash, BackendNumber backend, ServiceNumber service,
                          FlowLife life, FlowTime now) {
  return FlowEntry::make(flow_tag(hash), backend, service, life, false, now);
}

inline FlowTableCounters counters_of(const FlowTable& table) {
  FlowTableCounters counters;
  table.read_into(counters);
  return counters;
}

/// Every entry that was inserted is still there or left in one way.
inline void check_identity(const FlowTable& table) {
  const FlowTableCounters c = counters_of(table);
  CHECK(c.inserted == c.embryonic + c.established + c.closing + c.expired + c.evicted_embryonic +
                          c.evicted_stale + c.gone + c.handed_over);
}

}  // namespace holdfast

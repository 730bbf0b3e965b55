// SPDX-License-Identifier: Apache-2.0
// What one worker counts for each backend and each service: packets, bytes, new flows, and the
// entries of its flow table by state. The worker writes; any thread may read.
//
// The gauges change with the entries themselves (FlowTable calls enter and leave), so they are
// exact and never negative. There is a row for every number that can exist, in memory that takes no
// page before its first use: nothing is ever allocated or moved while packets come.
#pragma once

#include <cstdint>

#include "lb/flow/flow_entry.h"
#include "lb/flow/stream_counts.h"
#include "lib/base/counter.h"
#include "lib/model/numbers.h"
#include "lib/model/stats.h"

namespace holdfast {

/// One cache line.
struct alignas(64) FlowCountRow {
  Counter packets;
  Counter bytes;
  Counter new_flows;
  Counter active;
  Counter embryonic;
  Counter closing;

  [[nodiscard]] Counter& gauge(FlowLife life) {
    if (life.state == FlowState::embryonic) return embryonic;
    return life.closing() ? closing : active;
  }
  /// Entries of every state. Owner thread only.
  [[nodiscard]] std::uint64_t entries() const {
    return active.read() + embryonic.read() + closing.read();
  }
  [[nodiscard]] FlowCounters read() const;
};
static_assert(sizeof(FlowCountRow) == 64);

class FlowCounts {
 public:
  /// Reserves address space; throws std::runtime_error when the system refuses that.
  FlowCounts();
  FlowCounts(const FlowCounts&) = delete;
  FlowCounts& operator=(const FlowCounts&) = delete;
  ~FlowCounts();

  // Owner thread only.
  void count_forwarded(ServiceNumber service, BackendNumber backend, std::uint32_t inner_bytes) {
    for (FlowCountRow* row : {&services_[index_of(service)], &backends_[index_of(backend)]}) {
      row->packets.add();
      row->bytes.add(inner_bytes);
    }
  }
  void count_new_flow(ServiceNumber service, BackendNumber backend) {
    services_[index_of(service)].new_flows.add();
    backends_[index_of(backend)].new_flows.add();
  }
  void enter(const FlowEntry& entry) { move(entry, 1); }
  void leave(const FlowEntry& entry) { move(entry, ~std::uint64_t{0}); }

  /// How long streams last: the worker tells it the time, the flow table what leaves.
  StreamCounts streams{};

  // Any thread.
  [[nodiscard]] const FlowCountRow& service(ServiceNumber number) const {
    return services_[index_of(number)];
  }
  [[nodiscard]] const FlowCountRow& backend(BackendNumber number) const {
    return backends_[index_of(number)];
  }

 private:
  /// One row more than there are numbers, so that "none" has a row too and no index is ever out of
  /// range.
  static constexpr std::size_t kRows = kMaxNumbers + 1;

  /// `by` is 1, or its two's complement.
  void move(const FlowEntry& entry, std::uint64_t by) {
    services_[index_of(entry.service())].gauge(entry.life()).add(by);
    backends_[index_of(entry.backend())].gauge(entry.life()).add(by);
  }

  void* mapping_ = nullptr;
  FlowCountRow* services_ = nullptr;
  FlowCountRow* backends_ = nullptr;
};

}  // namespace holdfast

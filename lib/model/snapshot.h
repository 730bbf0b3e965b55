// SPDX-License-Identifier: Apache-2.0
// The immutable view of the world that workers read: services, pools, tables, backends, next hops.
// ctrl/reconcile builds a whole new one; SnapshotSink publishes it by one pointer swap; the old one
// is freed after an RCU grace period. Nothing derived from it may be kept by a worker across bursts
// but numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/flow/flow_key.h"
#include "lib/model/backend.h"
#include "lib/model/service.h"
#include "lib/model/service_table.h"

namespace holdfast {

struct Snapshot {
  std::uint64_t generation = 0;  // counts publications, from 1
  HashSeed seed{};
  ServiceTable service_table{};
  std::vector<Service> services{};   // by ServiceNumber
  std::vector<Pool> pools{};         // by PoolNumber
  std::vector<Backend> backends{};   // by BackendNumber
  std::vector<NextHop> next_hops{};  // each backend's lie together

  [[nodiscard]] const Service* service(ServiceNumber number) const {
    const auto i = index_of(number);
    return i < services.size() && services[i].present ? &services[i] : nullptr;
  }
  /// Null: removed, or never was. A flow entry that names it is placed anew.
  [[nodiscard]] const Backend* backend(BackendNumber number) const {
    const auto i = index_of(number);
    return i < backends.size() && backends[i].present ? &backends[i] : nullptr;
  }
  [[nodiscard]] const Pool& pool(PoolNumber number) const { return pools[index_of(number)]; }
};

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// The seam between control plane and data plane: all that ctrl may ask of lb. ctrl calls these from
// its one thread, but for FlowScan; the implementations are in lb. (Flow queries are in
// lib/model/flow_query.h; injected packets and packet copies join here when the features that need
// them are built.)
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/model/drop_sample.h"
#include "lib/model/flow_query.h"
#include "lib/model/snapshot.h"
#include "lib/model/stats.h"

namespace holdfast {

/// Takes snapshots for the workers.
class SnapshotSink {
 public:
  virtual ~SnapshotSink() = default;
  /// Never blocks: workers see `next` at their next burst, the old one is freed by a later call of
  /// reclaim() once no worker can hold it.
  virtual void publish(std::unique_ptr<const Snapshot> next) = 0;
  /// Frees what the grace period allows. Call about once a second.
  virtual void reclaim() = 0;
};

/// Reads what the workers count.
class StatsSource {
 public:
  virtual ~StatsSource() = default;
  [[nodiscard]] virtual DataPlaneStats read_stats() const = 0;
  /// The latest dropped packet of each reason for which one was dropped, over all workers, in the
  /// order of DropReason.
  [[nodiscard]] virtual std::vector<DropSample> read_drop_samples() const = 0;
};

/// What ctrl must know of a port to turn kernel routes into next hops.
struct PortDescription {
  std::string name;              // of the config
  std::string interface;         // kernel interface, or empty (pcap, memif, null)
  unsigned interface_index = 0;  // 0: none
  MacAddress mac{};
  std::uint16_t mtu = 0;  // IP MTU in bytes
  bool sums_udp = false;  // fills in the UDP checksums of what leaves
};

}  // namespace holdfast

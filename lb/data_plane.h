// SPDX-License-Identifier: Apache-2.0
// The data plane as control sees it: ports, workers, flow tables and the snapshot that they share,
// behind the interfaces of lib/model/seam.h. Owned by the program's main; all calls by the control
// thread, but for read_flows() and read_streams(). One in a process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lb/port/ports.h"
#include "lb/snapshot_slot.h"
#include "lb/worker_thread.h"
#include "lib/base/result.h"
#include "lib/config/config.h"
#include "lib/model/seam.h"

namespace holdfast {

class DataPlane : public SnapshotSink, public StatsSource, public FlowQueries {
 public:
  /// Opens the ports and maps the flow tables. No packet is taken before start().
  [[nodiscard]] static Result<std::unique_ptr<DataPlane>> open(const Config& config);
  /// Stops.
  ~DataPlane() override;

  [[nodiscard]] const std::vector<PortDescription>& ports() const { return ports_.descriptions(); }

  /// Requires: a snapshot has been published.
  [[nodiscard]] Result<void> start();
  /// Returns when no worker runs any more; packets that wait in the queues are lost. Again is fine.
  void stop();

  void publish(std::unique_ptr<const Snapshot> next) override;
  void reclaim() override;
  [[nodiscard]] DataPlaneStats read_stats() const override;
  [[nodiscard]] std::vector<DropSample> read_drop_samples() const override;
  /// Requires: a snapshot has been published.
  [[nodiscard]] FlowAnswer look_up(const FlowQuestion& question) const override;
  /// Any thread.
  [[nodiscard]] std::optional<FlowPosition> read_flows(FlowPosition from, std::uint64_t places,
                                                       const FlowVisitor& visit) const override;
  /// Any thread.
  [[nodiscard]] StreamRecords read_streams(ServiceNumber service) const override;

  /// From now on exactly `vips` are steered to the workers (AF_XDP ports).
  [[nodiscard]] Result<void> set_vips(std::span<const IpAddress> vips) {
    return ports_.set_vips(vips);
  }

 private:
  DataPlane(Ports ports, unsigned workers);
  /// By worker. They live as long as the workers' objects, whether their threads run or not.
  [[nodiscard]] std::vector<const FlowTable*> tables() const;

  Instant start_;  // where the flow clock begins
  // Ended from the bottom up: no worker may outlive what it works with.
  Ports ports_;
  SnapshotSlot slot_;
  std::vector<std::unique_ptr<WorkerThread>> workers_;
  std::size_t backend_numbers_ = 0;  // so many have been in use so far
  std::size_t service_numbers_ = 0;
};

}  // namespace holdfast

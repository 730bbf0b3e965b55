// SPDX-License-Identifier: Apache-2.0
// The ports of [dataplane], open: EAL, buffers, devices and the steering of AF_XDP ports, in the
// order in which they depend on each other. Owned by DataPlane; the control thread makes, asks and
// ends it. One in a process, because EAL starts only once.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lb/port/device.h"
#include "lb/port/eal.h"
#include "lb/port/port_plan.h"
#include "lb/port/worker_io.h"
#include "lb/steering/steering.h"
#include "lib/base/result.h"
#include "lib/config/config.h"
#include "lib/model/seam.h"

namespace holdfast {

class Ports {
 public:
  /// Checks what can be checked before anything is touched, then opens everything. The steering
  /// programs start with the VIPs of `config`.
  [[nodiscard]] static Result<Ports> open(const Config& config);
  Ports(Ports&&) = default;
  Ports& operator=(Ports&&) = delete;
  /// Requires: no worker runs.
  ~Ports() = default;

  /// In the order of PortNumber.
  [[nodiscard]] const std::vector<PortDescription>& descriptions() const { return descriptions_; }
  /// The lcores of the workers are 1, 2, ...; their CPUs, by worker.
  [[nodiscard]] const std::vector<int>& worker_cpus() const { return worker_cpus_; }
  /// The queues of worker `worker`. Call once for each.
  [[nodiscard]] WorkerIo io_of(unsigned worker) const;
  /// Buffers that one worker may hold for fragments.
  [[nodiscard]] unsigned most_held() const { return plan_.most_held; }

  [[nodiscard]] Result<void> set_vips(std::span<const IpAddress> vips);
  [[nodiscard]] std::vector<PortStats> read_stats() const;
  [[nodiscard]] std::vector<SteeringStats> read_steering() const;

 private:
  Ports() = default;
  [[nodiscard]] Result<void> attach_steering(const Config& config);
  [[nodiscard]] Result<void> open_devices(const Config& config);
  void describe(const DataplaneConfig& config);

  // Closed from the bottom up: workers' queues, devices, buffers, EAL; the steering programs leave
  // last but one, when no socket is behind them any more.
  PortPlan plan_;
  std::vector<WorkerQueues> worker_queues_;
  std::vector<int> worker_cpus_;
  std::vector<PortDescription> descriptions_;
  std::vector<Steering> steering_;
  std::optional<Eal> eal_;
  Buffers buffers_;
  std::vector<Device> devices_;  // as PortPlan::devices
};

}  // namespace holdfast

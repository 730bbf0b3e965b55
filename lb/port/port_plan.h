// SPDX-License-Identifier: Apache-2.0
// From [dataplane] to what DPDK is told: which devices make up each port, which queues belong to
// which worker, how many buffers, which EAL flags. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lb/port/huge_pages.h"
#include "lib/base/result.h"
#include "lib/config/config.h"
#include "lib/model/numbers.h"

namespace holdfast {

enum class DeviceKind : std::uint8_t {
  af_xdp,  // one queue of a kernel interface
  vdev,    // any other virtual device
  pci,     // a NIC that DPDK owns
};

/// One DPDK device. A port is one device, or with AF_XDP one for each queue: DPDK's driver counts
/// only "combined" channels, and veth has none, so several queues in one device are refused there.
struct DevicePlan {
  std::size_t port = 0;  // index into DataplaneConfig::ports
  DeviceKind kind = DeviceKind::vdev;
  std::string name{};        // DPDK's: "net_af_xdp0", "net_pcap0", "0000:3b:00.0"
  std::string arguments{};   // "iface=eth0,start_queue=0,busy_budget=0"
  std::string interface {};  // af_xdp: the kernel's, and its queue
  std::uint16_t start_queue = 0;
  std::uint16_t queues = 1;
  std::uint16_t descriptors = 1024;  // of each receive and each transmit queue
};

struct PortPlan {
  std::vector<DevicePlan> devices;  // in the order of the ports, then of the queues
  unsigned buffers = 0;             // packet buffers for all queues and workers
  unsigned most_held = 0;           // of them, for the fragments that one worker may hold
  std::size_t memory = 0;           // bytes that DPDK needs for the buffers and itself
};

/// Room for a packet and its headroom in one buffer, bytes. With DPDK's headers it stays below a
/// page, which AF_XDP demands.
inline constexpr std::uint16_t kBufferRoom = 3840;

/// Requires: parse_config accepted `config`, so each port has at least as many queues as there are
/// workers. Error: more devices than DPDK can hold.
[[nodiscard]] Result<PortPlan> plan_ports(const DataplaneConfig& config);

/// One queue of a device; `device` is an index into PortPlan::devices.
struct PlannedQueue {
  std::size_t device = 0;
  std::uint16_t queue = 0;

  friend bool operator==(const PlannedQueue&, const PlannedQueue&) = default;
};

struct WorkerQueues {
  std::vector<PlannedQueue> receive;   // of all ports, this worker's alone
  std::vector<PlannedQueue> transmit;  // by PortNumber, this worker's alone
};

/// The queues of a port go round among the workers: queue q belongs to worker q mod workers, and
/// worker w sends on queue w. Requires: plan_ports(config) gave `plan`.
[[nodiscard]] std::vector<WorkerQueues> assign_queues(const PortPlan& plan,
                                                      const DataplaneConfig& config);

/// What the machine offers; read by the caller.
struct EalSurroundings {
  std::vector<int> cpus;                // that this process may use, ascending
  std::vector<HugePages> huge_pages{};  // of all nodes
  std::optional<int> nic_node{};        // of the first NIC that DPDK owns; nullopt: it owns none
  int process = 0;                      // makes names unique
};

/// The CPUs of the workers, one each: the last ones, so that CPU 0, which serves most interrupts,
/// is taken last. Error: there are too few.
[[nodiscard]] Result<std::vector<int>> choose_worker_cpus(const std::vector<int>& allowed,
                                                          unsigned workers);

/// The arguments of rte_eal_init, program name included. Worker w runs on lcore w + 1; the control
/// thread is lcore 0 and may run on any CPU. Nothing is left in the file system. With enough free
/// huge pages on one node those are used, else plain memory; a NIC that DPDK owns needs huge pages
/// on its own node (error). Flow tables are not counted: they take huge pages that are left, or do
/// without.
[[nodiscard]] Result<std::vector<std::string>> eal_arguments(const PortPlan& plan,
                                                             const EalSurroundings& surroundings,
                                                             const std::vector<int>& worker_cpus);

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
#include "lb/port/port_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rte_config.h>

#include <algorithm>

namespace holdfast {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

// What one AF_XDP queue can hold at once: the fill ring (2048 in DPDK's driver), a full transmit
// ring and its completion ring.
constexpr unsigned kBuffersPerAfXdpQueue = 3 * 2048;
constexpr unsigned kBuffersPerQueue = 4 * 1024;
// A worker's burst and DPDK's per-lcore cache of free buffers.
constexpr unsigned kBuffersPerWorker = 1024;
// So many fragments that wait for their first one, if that is less than a tenth of all buffers:
// they must never be those that the queues need.
constexpr unsigned kMostHeldPerWorker = 1024;
// Buffer, rte_mbuf and mempool header.
constexpr std::size_t kBufferFootprint = kBufferRoom + 256;
constexpr std::size_t kDpdkItself = 40 * kMiB;

/// "net_pcap0,rx_pcap=in" -> {"net_pcap0", "rx_pcap=in"}
std::pair<std::string, std::string> split_vdev(const std::string& vdev) {
  const auto comma = vdev.find(',');
  if (comma == std::string::npos) return {vdev, {}};
  return {vdev.substr(0, comma), vdev.substr(comma + 1)};
}

void add_devices(PortPlan& plan, std::size_t index, const PortConfig& port) {
  if (!port.interface.empty()) {
    for (std::uint16_t queue = 0; queue < port.queues; ++queue) {
      // busy_budget=0: an empty receive makes no system call, and an idle worker can sleep.
      plan.devices.push_back(
          {.port = index,
           .kind = DeviceKind::af_xdp,
           .name = fmt::format("net_af_xdp_{}_{}", index, queue),
           .arguments = fmt::format("iface={},start_queue={},busy_budget=0", port.interface, queue),
           .interface = port.interface,
           .start_queue = queue,
           .queues = 1,
           .descriptors = 2048});
    }
  } else if (!port.vdev.empty()) {
    auto [name, arguments] = split_vdev(port.vdev);
    plan.devices.push_back({.port = index,
                            .kind = DeviceKind::vdev,
                            .name = std::move(name),
                            .arguments = std::move(arguments),
                            .queues = port.queues});
  } else {
    plan.devices.push_back(
        {.port = index, .kind = DeviceKind::pci, .name = port.pci, .queues = port.queues});
  }
}

}  // namespace

Result<PortPlan> plan_ports(const DataplaneConfig& config) {
  PortPlan plan;
  plan.buffers = (kBuffersPerWorker + kMostHeldPerWorker) * config.workers;
  for (std::size_t i = 0; i < config.ports.size(); ++i) {
    const PortConfig& port = config.ports[i];
    add_devices(plan, i, port);
    plan.buffers +=
        port.queues * (port.interface.empty() ? kBuffersPerQueue : kBuffersPerAfXdpQueue);
  }
  if (plan.devices.size() > RTE_MAX_ETHPORTS)
    return fail(
        fmt::format("the ports need {} DPDK devices (an interface needs one a queue), but "
                    "this DPDK has room for {}: lower queues",
                    plan.devices.size(), RTE_MAX_ETHPORTS));
  plan.most_held = std::min(kMostHeldPerWorker, (plan.buffers - 1) / 10 / config.workers);
  plan.memory = plan.buffers * kBufferFootprint + kDpdkItself;
  return plan;
}

std::vector<WorkerQueues> assign_queues(const PortPlan& plan, const DataplaneConfig& config) {
  std::vector<WorkerQueues> workers(config.workers);
  std::vector<std::uint16_t> seen(config.ports.size(), 0);  // queues of the port so far
  for (auto& worker : workers) worker.transmit.resize(config.ports.size());
  for (std::size_t i = 0; i < plan.devices.size(); ++i) {
    const DevicePlan& device = plan.devices[i];
    for (std::uint16_t queue = 0; queue < device.queues; ++queue) {
      const std::uint16_t of_port = seen[device.port]++;
      workers[of_port % config.workers].receive.push_back({i, queue});
      if (of_port < config.workers) workers[of_port].transmit[device.port] = {i, queue};
    }
  }
  return workers;
}

Result<std::vector<int>> choose_worker_cpus(const std::vector<int>& allowed, unsigned workers) {
  if (allowed.size() < workers)
    return fail(
        fmt::format("workers = {}, but this process may use {} CPU{}: lower workers, or "
                    "give it more CPUs (taskset, or CPUAffinity= in its service unit)",
                    workers, allowed.size(), allowed.size() == 1 ? "" : "s"));
  if (workers >= RTE_MAX_LCORE)
    return fail(fmt::format("workers = {}, but this DPDK has room for {}: lower workers", workers,
                            RTE_MAX_LCORE - 1));
  return std::vector<int>(allowed.end() - static_cast<std::ptrdiff_t>(workers), allowed.end());
}

Result<std::vector<std::string>> eal_arguments(const PortPlan& plan,
                                               const EalSurroundings& surroundings,
                                               const std::vector<int>& worker_cpus) {
  std::vector<std::string> arguments{"holdfastd", "--no-telemetry"};

  std::vector<std::string> addresses;
  bool af_xdp = false;
  for (const DevicePlan& device : plan.devices) {
    if (device.kind == DeviceKind::pci) addresses.push_back(device.name);
    af_xdp |= device.kind == DeviceKind::af_xdp;
  }
  // Without either, DPDK would look at every NIC of the machine.
  if (addresses.empty()) arguments.push_back("--no-pci");
  for (const auto& address : addresses) arguments.insert(arguments.end(), {"-a", address});
  // By physical addresses the pool of buffers would have gaps between huge pages, and the AF_XDP
  // driver, which takes it for one gapless piece, would give the kernel less than all of it.
  if (af_xdp || addresses.empty()) arguments.push_back("--iova-mode=va");

  const auto& node = surroundings.nic_node;
  if (enough_huge_pages(surroundings.huge_pages, plan.memory, node)) {
    arguments.push_back("--in-memory");
  } else if (!addresses.empty()) {
    return fail(
        fmt::format("DPDK and its packet buffers need {}",
                    huge_pages_to_reserve(surroundings.huge_pages, plan.memory, node.value_or(0))));
  } else {
    arguments.insert(arguments.end(),
                     {"--no-huge", "-m", fmt::format("{}", plan.memory / kMiB + 1), "--no-shconf",
                      fmt::format("--file-prefix=holdfast{}", surroundings.process)});
  }

  std::string lcores = fmt::format("0@({})", fmt::join(surroundings.cpus, ","));
  for (std::size_t i = 0; i < worker_cpus.size(); ++i)
    lcores += fmt::format(",{}@{}", i + 1, worker_cpus[i]);
  arguments.insert(arguments.end(), {"--lcores", lcores, "--main-lcore", "0"});
  return arguments;
}

}  // namespace holdfast

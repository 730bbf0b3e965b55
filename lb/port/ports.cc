// SPDX-License-Identifier: Apache-2.0
#include "lb/port/ports.h"

#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <xdp/libxdp.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "lb/port/jumbo.h"
#include "lb/port/kernel_interface.h"
#include "lb/port/pci_device.h"
#include "lb/port/tunnel_room.h"
#include "lb/port/veth_peer.h"

namespace holdfast {
namespace {

/// libbpf and libxdp print to standard error of themselves; their words belong in the debug log.
template <class Level>
int log_library_line(Level, const char* format, va_list arguments) {
  char line[512];
  std::vsnprintf(line, sizeof(line), format, arguments);
  std::string_view text(line);
  while (text.ends_with('\n')) text.remove_suffix(1);
  spdlog::debug("bpf: {}", text);
  return 0;
}

bool is_af_xdp(const DevicePlan& device) { return device.kind == DeviceKind::af_xdp; }

/// Puts the port's name in front of what is wrong with it.
Error of_port(const PortConfig& port, Error error) {
  error.message = fmt::format("port {}: {}", port.name, error.message);
  return error;
}

/// The NICs that DPDK shall own: the NUMA node of the first, whose the buffers will be; nullopt:
/// there is none.
Result<std::optional<int>> check_nics(const std::vector<PortConfig>& ports) {
  std::optional<int> node;
  for (const PortConfig& port : ports) {
    if (port.pci.empty()) continue;
    const PciDevice device = read_pci_device(port.pci);
    if (const auto good = check_pci_device(device); !good)
      return tl::unexpected(of_port(port, good.error()));
    if (!node) node = device.node;
  }
  return node;
}

Result<void> check_far_end(const PortConfig& port, unsigned interface_index) {
  const VethPeer peer = find_veth_peer(interface_index);
  if (peer.seen == VethPeer::Seen::elsewhere)
    spdlog::info(
        "port {}: {} is a veth, and its far end is out of sight: it must not leave checksums to "
        "hardware (`ethtool -K FAR-END tx off`)",
        port.name, port.interface);
  return check_veth_peer(port.interface, peer);
}

/// The kernel's interfaces, by port; those of other kinds of port stay empty.
Result<std::vector<KernelInterface>> check_interfaces(const Config& config) {
  const auto& ports = config.dataplane.ports;
  std::vector<KernelInterface> interfaces;
  for (const PortConfig& port : ports) {
    interfaces.emplace_back();
    if (port.interface.empty()) continue;
    auto interface = read_interface(port.interface);
    if (!interface) return tl::unexpected(of_port(port, interface.error()));
    interfaces.back() = std::move(*interface);
  }
  if (const auto good = check_af_xdp_privileges(); !good) return tl::unexpected(good.error());
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (ports[i].interface.empty()) continue;
    if (const auto good = check_for_af_xdp(interfaces[i], ports[i].queues); !good)
      return tl::unexpected(of_port(ports[i], good.error()));
    if (const auto good = check_far_end(ports[i], interfaces[i].index); !good)
      return tl::unexpected(of_port(ports[i], good.error()));
  }
  if (const auto good = check_tunnel_room(config, interfaces); !good)
    return tl::unexpected(good.error());
  return interfaces;
}

}  // namespace

Result<Ports> Ports::open(const Config& config) {
  const DataplaneConfig& dataplane = config.dataplane;
  Ports ports;
  auto plan = plan_ports(dataplane);
  if (!plan) return tl::unexpected(plan.error());
  ports.plan_ = std::move(*plan);
  ports.worker_queues_ = assign_queues(ports.plan_, dataplane);

  EalSurroundings surroundings = read_surroundings();
  const auto node = check_nics(dataplane.ports);
  if (!node) return tl::unexpected(node.error());
  surroundings.nic_node = *node;
  auto cpus = choose_worker_cpus(surroundings.cpus, dataplane.workers);
  if (!cpus) return tl::unexpected(cpus.error());
  ports.worker_cpus_ = std::move(*cpus);
  const auto arguments = eal_arguments(ports.plan_, surroundings, ports.worker_cpus_);
  if (!arguments)  // for the sake of the NICs
    return tl::unexpected(of_port(*std::find_if(dataplane.ports.begin(), dataplane.ports.end(),
                                                [](const auto& port) { return !port.pci.empty(); }),
                                  arguments.error()));

  if (const auto good = ports.attach_steering(config); !good) return tl::unexpected(good.error());
  auto eal = Eal::start(*arguments);
  if (!eal) return tl::unexpected(eal.error());
  ports.eal_.emplace(std::move(*eal));
  auto buffers = make_buffers(ports.plan_.buffers, dataplane.workers + 1, surroundings.nic_node);
  if (!buffers) return tl::unexpected(buffers.error());
  ports.buffers_ = std::move(*buffers);
  if (const auto good = ports.open_devices(config); !good) return tl::unexpected(good.error());
  ports.describe(dataplane);
  return ports;
}

Result<void> Ports::attach_steering(const Config& config) {
  const auto& ports = config.dataplane.ports;
  const auto sockets = std::count_if(plan_.devices.begin(), plan_.devices.end(), is_af_xdp);
  if (sockets == 0) return {};
  // All checks first: a fault of the last port must not disturb what runs on the first one.
  const auto interfaces = check_interfaces(config);
  if (!interfaces) return tl::unexpected(interfaces.error());
  // Each socket locks the whole pool.
  if (const auto good = allow_locked_memory(static_cast<std::size_t>(sockets) * plan_.memory);
      !good)
    return good;
  libbpf_set_print(log_library_line<libbpf_print_level>);
  libxdp_set_print(log_library_line<libxdp_print_level>);

  std::vector<IpAddress> vips;
  for (const VipConfig& vip : config.vips) vips.push_back(vip.address);
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const PortConfig& port = ports[i];
    if (port.interface.empty()) continue;
    auto steering = Steering::attach({.port = port.name,
                                      .interface = port.interface,
                                      .interface_index = (*interfaces)[i].index,
                                      .receive_queues = (*interfaces)[i].receive_queues},
                                     vips);
    if (!steering) return tl::unexpected(of_port(port, steering.error()));
    if (!steering->in_driver())
      spdlog::warn("port {}: the driver of {} has no XDP, so packets take a slower way", port.name,
                   port.interface);
    steering_.push_back(std::move(*steering));
  }
  return {};
}

Result<void> Ports::open_devices(const Config& config) {
  const bool jumbo = expects_jumbo(config);
  for (const DevicePlan& planned : plan_.devices) {
    auto device = Device::open(planned, {.port = config.dataplane.ports[planned.port].name,
                                         .buffers = buffers_.get(),
                                         .jumbo = jumbo});
    if (!device) return tl::unexpected(device.error());
    devices_.push_back(std::move(*device));
  }
  return {};
}

void Ports::describe(const DataplaneConfig& config) {
  for (std::size_t i = 0; i < config.ports.size(); ++i) {
    const PortConfig& port = config.ports[i];
    PortDescription description{.name = port.name, .interface = port.interface};
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      if (plan_.devices[d].port != i) continue;
      description.mac = devices_[d].mac();
      description.mtu = devices_[d].mtu();
      description.sums_udp = devices_[d].sums_udp();
    }
    if (!port.interface.empty()) {
      if (const auto interface = read_interface(port.interface)) {
        description.interface_index = interface->index;
        description.mac = interface->mac;
        description.mtu = static_cast<std::uint16_t>(interface->mtu);
      }
    }
    spdlog::info("port {}: {}, {} queue(s), address {}, MTU {}{}", port.name,
                 !port.interface.empty() ? port.interface : port.pci + port.vdev, port.queues,
                 description.mac.text(), description.mtu,
                 description.sums_udp ? "; it fills in UDP checksums" : "");
    descriptions_.push_back(std::move(description));
  }
}

WorkerIo Ports::io_of(unsigned worker) const {
  const WorkerQueues& queues = worker_queues_[worker];
  WorkerIo::Parts parts{.buffers = buffers_.get()};
  for (const PlannedQueue& planned : queues.receive) {
    const Device& device = devices_[planned.device];
    parts.receive.push_back({device.id(), planned.queue});
    if (planned.queue < device.descriptors().size())
      parts.descriptors.push_back(device.descriptors()[planned.queue]);
  }
  for (const PlannedQueue& planned : queues.transmit) {
    const Device& device = devices_[planned.device];
    parts.transmit.push_back({device.id(), planned.queue, device.takes_chains()});
  }
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    parts.ports.resize(std::max<std::size_t>(parts.ports.size(), devices_[i].id() + 1u), kNoPort);
    parts.ports[devices_[i].id()] = static_cast<PortNumber>(plan_.devices[i].port);
  }
  return WorkerIo(std::move(parts));
}

Result<void> Ports::set_vips(std::span<const IpAddress> vips) {
  for (Steering& steering : steering_)
    if (auto set = steering.set_vips(vips); !set) return set;
  return {};
}

std::vector<PortStats> Ports::read_stats() const {
  std::vector<PortStats> result(descriptions_.size());
  for (std::size_t i = 0; i < result.size(); ++i) result[i].name = descriptions_[i].name;
  for (std::size_t i = 0; i < devices_.size(); ++i)
    devices_[i].add_stats(result[plan_.devices[i].port]);
  // AF_XDP devices are up whatever becomes of the link below them.
  for (std::size_t i = 0; i < result.size(); ++i) {
    const auto& interface = descriptions_[i].interface;
    if (!interface.empty()) result[i].up = has_carrier(interface);
  }
  return result;
}

std::vector<SteeringStats> Ports::read_steering() const {
  std::vector<SteeringStats> result;
  for (const Steering& steering : steering_) result.push_back(steering.read_stats());
  return result;
}

}  // namespace holdfast

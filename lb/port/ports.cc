// SPDX-License-Identifier: Apache-2.0
#include "lb/port/ports.h"

#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <xdp/libxdp.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <string>
#include <string_view>

#include "lb/port/kernel_interface.h"

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

}  // namespace

Result<Ports> Ports::open(const DataplaneConfig& config, std::span<const IpAddress> vips) {
  Ports ports;
  auto plan = plan_ports(config);
  if (!plan) return tl::unexpected(plan.error());
  ports.plan_ = std::move(*plan);
  ports.worker_queues_ = assign_queues(ports.plan_, config);

  const EalSurroundings surroundings = read_surroundings();
  auto cpus = choose_worker_cpus(surroundings.cpus, config.workers);
  if (!cpus) return tl::unexpected(cpus.error());
  ports.worker_cpus_ = std::move(*cpus);
  const auto arguments = eal_arguments(ports.plan_, surroundings, ports.worker_cpus_);
  if (!arguments) return tl::unexpected(arguments.error());

  if (const auto good = ports.attach_steering(config, vips); !good)
    return tl::unexpected(good.error());
  auto eal = Eal::start(*arguments);
  if (!eal) return tl::unexpected(eal.error());
  ports.eal_.emplace(std::move(*eal));
  auto buffers = make_buffers(ports.plan_.buffers, config.workers + 1);
  if (!buffers) return tl::unexpected(buffers.error());
  ports.buffers_ = std::move(*buffers);
  if (const auto good = ports.open_devices(config); !good) return tl::unexpected(good.error());
  ports.describe(config);
  return ports;
}

Result<void> Ports::attach_steering(const DataplaneConfig& config,
                                    std::span<const IpAddress> vips) {
  const auto sockets = std::count_if(plan_.devices.begin(), plan_.devices.end(), is_af_xdp);
  if (sockets == 0) return {};
  // All checks first: a fault of the last port must not disturb what runs on the first one.
  std::vector<KernelInterface> interfaces;
  for (const PortConfig& port : config.ports) {
    interfaces.emplace_back();
    if (port.interface.empty()) continue;
    auto interface = read_interface(port.interface);
    if (!interface) return tl::unexpected(of_port(port, interface.error()));
    interfaces.back() = std::move(*interface);
  }
  if (const auto good = check_af_xdp_privileges(); !good) return good;
  for (std::size_t i = 0; i < config.ports.size(); ++i) {
    if (config.ports[i].interface.empty()) continue;
    if (const auto good = check_for_af_xdp(interfaces[i], config.ports[i].queues); !good)
      return tl::unexpected(of_port(config.ports[i], good.error()));
  }
  // Each socket locks the whole pool.
  if (const auto good = allow_locked_memory(static_cast<std::size_t>(sockets) * plan_.memory);
      !good)
    return good;
  libbpf_set_print(log_library_line<libbpf_print_level>);
  libxdp_set_print(log_library_line<libxdp_print_level>);

  for (std::size_t i = 0; i < config.ports.size(); ++i) {
    const PortConfig& port = config.ports[i];
    if (port.interface.empty()) continue;
    auto steering = Steering::attach({.port = port.name,
                                      .interface = port.interface,
                                      .interface_index = interfaces[i].index,
                                      .receive_queues = interfaces[i].receive_queues},
                                     vips);
    if (!steering) return tl::unexpected(of_port(port, steering.error()));
    if (!steering->in_driver())
      spdlog::warn("port {}: the driver of {} has no XDP, so packets take a slower way", port.name,
                   port.interface);
    steering_.push_back(std::move(*steering));
  }
  return {};
}

Result<void> Ports::open_devices(const DataplaneConfig& config) {
  for (const DevicePlan& planned : plan_.devices) {
    auto device = Device::open(planned, config.ports[planned.port].name, buffers_.get());
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
    }
    if (!port.interface.empty()) {
      if (const auto interface = read_interface(port.interface)) {
        description.interface_index = interface->index;
        description.mac = interface->mac;
        description.mtu = static_cast<std::uint16_t>(interface->mtu);
      }
    }
    spdlog::info("port {}: {}, {} queue(s), address {}, MTU {}", port.name,
                 !port.interface.empty() ? port.interface : port.pci + port.vdev, port.queues,
                 description.mac.text(), description.mtu);
    descriptions_.push_back(std::move(description));
  }
}

WorkerIo Ports::io_of(unsigned worker) const {
  const WorkerQueues& queues = worker_queues_[worker];
  std::vector<WorkerIo::Queue> receive;
  std::vector<WorkerIo::Queue> transmit;
  std::vector<int> descriptors;
  for (const PlannedQueue& planned : queues.receive) {
    const Device& device = devices_[planned.device];
    receive.push_back({device.id(), planned.queue});
    if (planned.queue < device.descriptors().size())
      descriptors.push_back(device.descriptors()[planned.queue]);
  }
  for (const PlannedQueue& planned : queues.transmit)
    transmit.push_back({devices_[planned.device].id(), planned.queue});
  return {std::move(receive), std::move(transmit), std::move(descriptors)};
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

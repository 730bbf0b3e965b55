// SPDX-License-Identifier: Apache-2.0
#include "lb/port/device.h"

#include <dirent.h>
#include <fmt/format.h>
#include <rte_bus_vdev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <set>
#include <thread>
#include <utility>

#include "lb/port/af_xdp_queue.h"
#include "lb/port/eal.h"
#include "lb/port/jumbo.h"
#include "lib/base/digits.h"

namespace holdfast {
namespace {

/// The AF_XDP sockets among this process's descriptors. DPDK has no call that tells them, so those
/// that appear while a queue is set up are that queue's.
std::set<int> af_xdp_sockets() {
  std::set<int> result;
  DIR* folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) return result;
  while (const dirent* entry = ::readdir(folder)) {
    const auto descriptor = parse_decimal<int>(entry->d_name);  // not "." and ".."
    if (!descriptor) continue;
    int domain = 0;
    socklen_t size = sizeof(domain);
    if (::getsockopt(*descriptor, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_XDP)
      result.insert(*descriptor);
  }
  ::closedir(folder);
  return result;
}

Result<void> check_queue_count(const DevicePlan& plan, const std::string& port,
                               const rte_eth_dev_info& info) {
  const unsigned most = std::min(info.max_rx_queues, info.max_tx_queues);
  if (plan.queues <= most) return {};
  return fail(
      fmt::format("port {}: {} offers {} queue{} in each direction, but queues = {}: lower "
                  "queues, or give the device more",
                  port, plan.name, most, most == 1 ? "" : "s", plan.queues));
}

}  // namespace

void FreeBuffers::operator()(rte_mempool* pool) const { rte_mempool_free(pool); }

Result<Buffers> make_buffers(unsigned count, unsigned caches, std::optional<int> node) {
  constexpr unsigned kCache = 256;  // free buffers each worker keeps at hand
  const DpdkCall call;
  Buffers buffers(rte_pktmbuf_pool_create("holdfast", count + caches * kCache, kCache, 0,
                                          kBufferRoom, node.value_or(SOCKET_ID_ANY)));
  if (buffers == nullptr)
    return fail(
        fmt::format("cannot get memory for {} packet buffers: {}", count, call.reason(rte_errno)));
  return buffers;
}

Result<Device> Device::open(const DevicePlan& plan, const Surroundings& around) {
  const std::string& port = around.port;
  Device device;
  if (plan.kind != DeviceKind::pci) {
    const DpdkCall call;
    // Not rte_eal_hotplug_add(), which takes at most 127 characters for the sake of other
    // processes.
    if (const int result = rte_vdev_init(plan.name.c_str(), plan.arguments.c_str()); result != 0)
      return fail(fmt::format("port {}: cannot make the device {}{}{}: {}", port, plan.name,
                              plan.arguments.empty() ? "" : ",", plan.arguments,
                              call.reason(result)));
    device.vdev_ = plan.name;
  }
  if (rte_eth_dev_get_port_by_name(plan.name.c_str(), &device.id_) != 0)
    return fail(
        fmt::format("port {}: DPDK has no driver that takes the device at {}: holdfastd "
                    "--log-level debug shows what DPDK says of it",
                    port, plan.name));
  device.open_ = true;
  if (const auto ready = device.set_up(plan, around); !ready) return tl::unexpected(ready.error());
  return device;
}

Result<void> Device::set_up(const DevicePlan& plan, const Surroundings& around) {
  const std::string& port = around.port;
  const DpdkCall call;
  const auto failed = [&](const char* what, int result) {
    return fail(
        fmt::format("port {}: cannot {} {}: {}", port, what, plan.name, call.reason(result)));
  };
  rte_eth_dev_info info{};
  if (const int result = rte_eth_dev_info_get(id_, &info); result != 0)
    return failed("read", result);
  if (const auto enough = check_queue_count(plan, port, info); !enough) return enough;

  rte_eth_conf wanted{};
  // The NIC may spread as it likes: correctness does not depend on it.
  if (plan.kind == DeviceKind::pci && plan.queues > 1 && info.flow_type_rss_offloads != 0) {
    wanted.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
    wanted.rx_adv_conf.rss_conf.rss_hf =
        (RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP) & info.flow_type_rss_offloads;
  }
  sums_udp_ = (info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_UDP_CKSUM) != 0;
  if (sums_udp_) wanted.txmode.offloads |= RTE_ETH_TX_OFFLOAD_UDP_CKSUM;
  const JumboWishes wishes = jumbo_wishes(plan.kind, info, around.jumbo);
  wanted.rxmode.offloads |= wishes.receive_offloads;
  wanted.txmode.offloads |= wishes.transmit_offloads;
  takes_chains_ = holdfast::takes_chains(info, wishes.transmit_offloads);
  if (const int result = rte_eth_dev_configure(id_, plan.queues, plan.queues, &wanted); result != 0)
    return failed("configure", result);
  // A device that does not take it goes on with its own; the log has what it is.
  if (wishes.mtu != 0) static_cast<void>(rte_eth_dev_set_mtu(id_, wishes.mtu));

  std::uint16_t receive_size = plan.descriptors;
  std::uint16_t transmit_size = plan.descriptors;
  rte_eth_dev_adjust_nb_rx_tx_desc(id_, &receive_size, &transmit_size);
  for (std::uint16_t queue = 0; queue < plan.queues; ++queue) {
    const auto before = af_xdp_sockets();
    if (const int result =
            rte_eth_rx_queue_setup(id_, queue, receive_size, static_cast<unsigned>(SOCKET_ID_ANY),
                                   nullptr, around.buffers);
        result != 0) {
      if (plan.kind == DeviceKind::af_xdp)
        if (const auto free = check_queue_is_free(plan.interface, plan.start_queue); !free)
          return fail(fmt::format("port {}: {}", port, free.error().message), {}, "busy");
      return failed("set up a receive queue of", result);
    }
    for (const int descriptor : af_xdp_sockets())
      if (!before.contains(descriptor)) descriptors_.push_back(descriptor);
    if (const int result = rte_eth_tx_queue_setup(id_, queue, transmit_size,
                                                  static_cast<unsigned>(SOCKET_ID_ANY), nullptr);
        result != 0)
      return failed("set up a transmit queue of", result);
  }
  if (const int result = rte_eth_dev_start(id_); result != 0) return failed("start", result);
  return {};
}

Device::Device(Device&& other) noexcept
    : id_(other.id_),
      vdev_(std::move(other.vdev_)),
      descriptors_(std::move(other.descriptors_)),
      sums_udp_(other.sums_udp_),
      takes_chains_(other.takes_chains_),
      open_(std::exchange(other.open_, false)) {}

Device& Device::operator=(Device&& other) noexcept {
  std::swap(id_, other.id_);
  std::swap(vdev_, other.vdev_);
  std::swap(descriptors_, other.descriptors_);
  std::swap(sums_udp_, other.sums_udp_);
  std::swap(takes_chains_, other.takes_chains_);
  std::swap(open_, other.open_);
  return *this;
}

Device::~Device() {
  if (!open_) return;
  const DpdkCall call;
  rte_eth_dev_stop(id_);
  if (vdev_.empty())
    rte_eth_dev_close(id_);
  else
    rte_vdev_uninit(vdev_.c_str());
}

MacAddress Device::mac() const {
  rte_ether_addr address{};
  rte_eth_macaddr_get(id_, &address);
  MacAddress result;
  std::copy(std::begin(address.addr_bytes), std::end(address.addr_bytes), result.bytes.begin());
  return result;
}

std::uint16_t Device::mtu() const {
  std::uint16_t mtu = 0;
  rte_eth_dev_get_mtu(id_, &mtu);
  return mtu;
}

void Device::add_stats(PortStats& stats) const {
  rte_eth_link link{};
  if (rte_eth_link_get_nowait(id_, &link) == 0 && link.link_status == RTE_ETH_LINK_UP)
    stats.up = true;
  rte_eth_stats counted{};
  if (rte_eth_stats_get(id_, &counted) != 0) return;
  stats.received += counted.ipackets;
  stats.transmitted += counted.opackets;
  stats.missed += counted.imissed;
  stats.receive_errors += counted.ierrors;
  stats.transmit_errors += counted.oerrors;
  stats.no_buffers += counted.rx_nombuf;
}

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// One DPDK device, open and started, with the buffers that its queues take from. Owned by Ports;
// the control thread opens, asks and closes it, while workers receive and send on its queues.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lb/port/port_plan.h"
#include "lib/base/result.h"
#include "lib/model/stats.h"
#include "lib/net/address.h"

struct rte_mempool;

namespace holdfast {

struct FreeBuffers {
  void operator()(rte_mempool* pool) const;
};
using Buffers = std::unique_ptr<rte_mempool, FreeBuffers>;

/// The one pool of packet buffers that all devices share, so that a packet can leave on any port
/// without a copy. `node`: the NUMA node that it is to be on; nullopt: any. Error: not enough
/// memory.
[[nodiscard]] Result<Buffers> make_buffers(unsigned count, unsigned caches,
                                           std::optional<int> node);

class Device {
 public:
  struct Surroundings {
    std::string port;  // its name, for errors
    rte_mempool* buffers = nullptr;
    bool jumbo = false;  // packets longer than a buffer are expected
  };
  /// Makes the device (a PCI one was made by EAL), sets its queues up and starts it.
  [[nodiscard]] static Result<Device> open(const DevicePlan& plan, const Surroundings& around);
  Device(Device&& other) noexcept;
  Device& operator=(Device&& other) noexcept;
  /// Requires: no worker uses it.
  ~Device();

  [[nodiscard]] std::uint16_t id() const { return id_; }
  /// AF_XDP: what a worker can sleep on, one for each receive queue; other kinds: empty.
  [[nodiscard]] const std::vector<int>& descriptors() const { return descriptors_; }
  [[nodiscard]] MacAddress mac() const;
  /// IP MTU, bytes.
  [[nodiscard]] std::uint16_t mtu() const;
  /// Whether it fills in UDP checksums where a packet asks for it.
  [[nodiscard]] bool sums_udp() const { return sums_udp_; }
  /// Packets in several buffers may be sent by it.
  [[nodiscard]] bool takes_chains() const { return takes_chains_; }
  /// Adds this device's counters to `stats`; a port is up when one of its devices is.
  void add_stats(PortStats& stats) const;

 private:
  Device() = default;
  [[nodiscard]] Result<void> set_up(const DevicePlan& plan, const Surroundings& around);

  std::uint16_t id_ = 0;
  std::string vdev_;  // name of a virtual device: it is unplugged at the end; empty: PCI
  std::vector<int> descriptors_;
  bool sums_udp_ = false;
  bool takes_chains_ = false;
  bool open_ = false;
};

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// What the kernel knows of a network interface, and whether AF_XDP can work on it. Control thread;
// asks by ioctl, so it sees this process's network namespace whatever /sys shows.
#pragma once

#include <cstddef>
#include <string>

#include "lib/base/result.h"
#include "lib/net/address.h"

namespace holdfast {

struct KernelInterface {
  std::string name;
  unsigned index = 0;
  bool up = false;  // administratively; the cable may be out
  MacAddress mac{};
  unsigned mtu = 0;             // IP MTU in bytes
  unsigned receive_queues = 1;  // that are in use now ("channels")
};

/// Error: there is no such interface here.
[[nodiscard]] Result<KernelInterface> read_interface(const std::string& name);

/// Whether the interface is there, administratively up, and has a link.
[[nodiscard]] bool has_carrier(const std::string& name);

/// The largest IP MTU of an AF_XDP port, in bytes: a frame with two VLAN tags must fit a buffer of
/// one page beside the headers that DPDK and the kernel keep in front of it.
inline constexpr unsigned kMaxAfXdpMtu = 3420;

/// Whether `queues` sockets can serve this interface. Pure. Every receive queue needs one: packets
/// of a queue without would be lost.
[[nodiscard]] Result<void> check_for_af_xdp(const KernelInterface& interface, unsigned queues);

/// Whether this process may use AF_XDP at all (error code "permission").
[[nodiscard]] Result<void> check_af_xdp_privileges();

/// AF_XDP locks its packet buffers in memory. Lifts the limit on that where we may; error (code
/// "permission"): it stays below `bytes`.
[[nodiscard]] Result<void> allow_locked_memory(std::size_t bytes);

}  // namespace holdfast

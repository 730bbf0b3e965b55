// SPDX-License-Identifier: Apache-2.0
// Packets that are longer than one buffer: whether any is expected, what a device is asked for so
// that they get in and out, and which devices take a packet in several buffers. Pure; control
// thread.
#pragma once

#include <rte_ethdev.h>

#include <cstdint>

#include "lb/port/port_plan.h"

namespace holdfast {

/// Bytes of a frame in its first buffer.
inline constexpr std::uint16_t kRoomInBuffer = kBufferRoom - RTE_PKTMBUF_HEADROOM;
/// Ethernet header, two tags and checksum: what a device may count besides the MTU.
inline constexpr std::uint16_t kLinkOverhead = 14 + 2 * 4 + 4;

/// A way to a backend takes packets that fill more than a buffer. Only then are devices asked for
/// what makes many of them slower.
[[nodiscard]] bool expects_jumbo(const Config& config);

struct JumboWishes {
  std::uint64_t receive_offloads = 0;
  std::uint64_t transmit_offloads = 0;
  std::uint16_t mtu = 0;  // 0: as the device has it

  friend bool operator==(const JumboWishes&, const JumboWishes&) = default;
};
/// A NIC gets the largest MTU whose frames the buffers hold, so that it does not throw away what
/// clients send; other devices look at no MTU, or at that of a kernel interface.
[[nodiscard]] JumboWishes jumbo_wishes(DeviceKind kind, const rte_eth_dev_info& info, bool jumbo);

/// Whether packets in several buffers may be given to a device that was set up with these
/// offloads. Some drivers send them and offer no offload for it; others, AF_XDP's among them, would
/// send what lies behind the first buffer in memory.
[[nodiscard]] bool takes_chains(const rte_eth_dev_info& info, std::uint64_t transmit_offloads);

}  // namespace holdfast

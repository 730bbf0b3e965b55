// SPDX-License-Identifier: Apache-2.0
// Packets that are spread over several buffers (a chain of mbufs): jumbo frames, and what drivers
// split. Only parse() meets them as they come; behind it the contract is:
//   - a packet that fits into its first buffer is in that buffer alone;
//   - of any other one at least kHead bytes are in the first buffer, so that each header, and all
//     that an answer may quote, is read and written without a thought for chains;
//   - no Ethernet padding is behind a chain's IP packet if it is for a VIP.
// Buffers that a packet no longer needs are given back at once. Workers call these, for packets
// that they own.
#pragma once

#include <rte_mbuf.h>

#include <cstddef>

#include "lb/packet_io.h"

namespace holdfast {

/// Two tags, the longest answer (an IPv6 packet of 1280 bytes) and then some.
inline constexpr std::size_t kHead = 1536;

/// Moves bytes from the buffers behind into the first one, until all are there, or kHead. False:
/// the first buffer has no room for so much or is not ours alone; the packet is as it was.
[[nodiscard]] bool gather_head(rte_mbuf& packet, PacketIo& io) noexcept;

/// Cuts a packet to its first `length` bytes. Requires: 0 < length <= pkt_len.
void cut_to(rte_mbuf& packet, std::uint32_t length, PacketIo& io) noexcept;

}  // namespace holdfast

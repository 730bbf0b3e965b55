// SPDX-License-Identifier: Apache-2.0
// Records of a capture as Ethernet frames, whatever link they were taken from. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lib/net/address.h"

namespace holdfast {

/// What we read: https://www.tcpdump.org/linktypes.html
enum class LinkType : std::uint8_t {
  ethernet,
  raw_ip,          // RAW, IPV4, IPV6
  linux_cooked,    // SLL: "any" of older tcpdumps
  linux_cooked_2,  // SLL2: "any" of newer ones
  loopback,        // NULL, LOOP: BSD's lo0
  ppp,
};

/// `dlt` as pcap_datalink() gives it; empty: not one of the above.
[[nodiscard]] std::optional<LinkType> link_type_of(int dlt);

/// For what a link without Ethernet does not tell.
struct FrameEnds {
  MacAddress source{};
  MacAddress destination{};
};

/// Makes `frame` the Ethernet frame that carries what `record` does. One that is shorter than its
/// own link header becomes a frame that is shorter than an Ethernet header.
void make_frame(LinkType type, std::span<const std::uint8_t> record, const FrameEnds& ends,
                std::vector<std::uint8_t>& frame);

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// A datagram in pieces, as a router or its sender would cut it.
#pragma once

#include <algorithm>
#include <vector>

#include "tests/dsl/packet.h"

namespace holdfast::dsl {

/// The fragments, in order, of a packet that begins Ethernet, IP: each with `bytes` (a multiple of
/// 8) of what lies behind the IP header, the last with what is left. An Ip4 brings its own id.
[[nodiscard]] inline std::vector<Packet> fragments_of(const Packet& packet, std::size_t bytes,
                                                      std::uint32_t id6 = 1) {
  const Bytes whole = packet.bytes();
  const auto* const ip4 = std::get_if<Ip4>(&packet.layers().at(1));
  const std::size_t ethernet = 14;
  const std::size_t header = ip4 != nullptr ? (whole[ethernet] & 0xfu) * 4u : 40u;
  const std::uint8_t protocol = whole[ethernet + (ip4 != nullptr ? 9 : 6)];
  std::vector<Packet> fragments;
  for (std::size_t at = ethernet + header; at < whole.size(); at += bytes) {
    const std::size_t end = std::min(whole.size(), at + bytes);
    const Raw piece{Bytes(whole.begin() + static_cast<std::ptrdiff_t>(at),
                          whole.begin() + static_cast<std::ptrdiff_t>(end))};
    const auto offset = static_cast<std::uint16_t>((at - ethernet - header) / 8);
    const bool more = end < whole.size();
    if (ip4 != nullptr) {
      Ip4 ip = *ip4;
      ip.df = false;
      ip.more_fragments = more;
      ip.fragment_offset = offset;
      ip.protocol = protocol;
      fragments.push_back(packet.layers()[0] / Packet(ip) / piece);
    } else {
      const Ip6 ip = std::get<Ip6>(packet.layers()[1]);
      const Fragment6 header6{.offset = offset, .more = more, .id = id6, .next_header = protocol};
      fragments.push_back(packet.layers()[0] / Packet(ip) / header6 / piece);
    }
  }
  return fragments;
}

}  // namespace holdfast::dsl

// SPDX-License-Identifier: Apache-2.0
// What the tests of fragment tables share: datagrams by number, pieces, packets that are tokens.
#pragma once

#include <chrono>
#include <cstdint>

#include "lb/fragment/fragments.h"

namespace holdfast {

using namespace std::chrono_literals;

inline constexpr FragmentReasons kV4 = fragment_reasons(Family::ipv4);
inline constexpr FragmentReasons kV6 = fragment_reasons(Family::ipv6);
inline const DatagramFlow kFlow{IpProtocol::udp, Be16::from_host(40000), Be16::from_host(443)};

/// Datagrams whose numbers differ by 4096 begin in the same place of the table's index.
[[nodiscard]] inline FlowHash datagram(std::uint64_t number) {
  return {.low64 = number, .high64 = ~number};
}
/// 800 bytes from `start` on.
[[nodiscard]] inline FragmentPiece piece(std::uint16_t start, bool last = false,
                                         std::uint16_t size = 800) {
  return {.start = start, .end = static_cast<std::uint16_t>(start + size), .last = last};
}
[[nodiscard]] inline FragmentTable::Fragment fragment(std::uint64_t number, FragmentPiece piece,
                                                      Family family = Family::ipv4) {
  return {.family = family, .datagram = datagram(number), .piece = piece};
}

/// A packet that is never looked into.
[[nodiscard]] inline rte_mbuf* token(std::uintptr_t number) {
  return reinterpret_cast<rte_mbuf*>(0x1000 + number * 64);
}

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// What a router says about one of our tunnelled packets that is too big for its next link: an ICMP
// fragmentation-needed (RFC 1191) or an ICMPv6 Packet Too Big (RFC 8201), with the outer header
// quoted. Anyone can send one, so it is read as bytes from a stranger; whether the quoted packet is
// one that this host sends is ctrl/path_mtu's question. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <tl/expected.hpp>

#include "lib/net/address.h"
#include "lib/net/headers.h"

namespace holdfast {

/// Below this a router's word about a path is not believed: an IPv4 path that every host of the
/// last decades can use has it (RFC 791 section 3.1 has it for hosts), and one of IPv6 must (RFC
/// 8201 section 4: a smaller one is to be discarded).
[[nodiscard]] constexpr std::uint16_t least_path_mtu(Family family) {
  return family == Family::ipv4 ? 576 : 1280;
}

/// The outer header that was quoted, and what the router can take.
struct OuterQuote {
  IpAddress source{};
  IpAddress destination{};
  IpProtocol protocol{};    // of what the outer IP header holds
  Be16 destination_port{};  // of UDP, else 0
  std::uint16_t mtu = 0;    // IP bytes; at least least_path_mtu()
};

enum class OuterQuoteFault : std::uint8_t {
  another_message,  // neither fragmentation-needed nor Packet Too Big
  malformed,        // cut, a wrong checksum, a quote that is no packet of ours or would have fitted
  mtu_too_small,    // 0, or below least_path_mtu()
};

/// Reads a message as raw sockets give it: of IPv4 with its IP header, of IPv6 from the ICMPv6
/// header on, and that with a checksum which the kernel has looked at. The quote's own IP header
/// has the family of the message.
[[nodiscard]] tl::expected<OuterQuote, OuterQuoteFault> read_outer_quote(
    Family family, std::span<const std::uint8_t> message);

}  // namespace holdfast

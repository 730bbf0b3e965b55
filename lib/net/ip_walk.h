// SPDX-License-Identifier: Apache-2.0
// The walk over one IP header: bounded, each byte looked at once, used for packets on the wire and
// for the packets that ICMP errors quote. Part of parse.cc; pure; any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "lib/model/drop_reason.h"
#include "lib/net/fragment_part.h"
#include "lib/net/headers.h"

namespace holdfast {

/// What can be read of an IP packet, and how long it may be by what carries it: more, when it goes
/// on in other buffers. Requires: readable <= length.
struct IpBytes {
  const std::uint8_t* at;
  std::size_t readable;
  std::size_t length;
};

enum class WalkOf : std::uint8_t {
  packet,  // as received: the IP length must lie within what carries it
  quote,   // in an ICMP error: cut anywhere, the IP length says only how long it was
};

struct IpWalk {
  bool good = false;
  bool addresses_known = false;  // also when !good: the fault lies behind the addresses
  DropReason fault{};            // when !good
  FragmentPart part = FragmentPart::whole;
  bool dont_fragment = false;
  bool authenticated = false;  // an authentication header was walked over
  bool more_fragments = false;
  std::uint32_t fragment_id = 0;
  std::size_t fragment_offset = 0;  // bytes
  std::size_t fragmentable = 0;     // where that part of the datagram begins, as l4
  std::uint8_t traffic_class = 0;
  IpProtocol protocol{};     // of what begins at l4
  std::size_t l4 = 0;        // bytes from the IP header's start; <= end
  std::size_t readable = 0;  // where the bytes end that can be read; <= end
  std::size_t end = 0;       // where the packet ends; a quote: or where the bytes do, if earlier
  std::size_t length = 0;    // as the IP header says
  const std::uint8_t* source = nullptr;  // 4 or 16 bytes
  const std::uint8_t* destination = nullptr;
};

/// A header, or a field, as it lies in the packet. Not by copy: gcc 12 moves a copied header
/// through the stack in overlapping pieces, and each load then waits for the stores (60 ns a
/// packet).
template <class Header>
[[nodiscard]] inline const Header& overlay(const std::uint8_t* at) {
  static_assert(alignof(Header) == 1 && std::is_trivially_copyable_v<Header>);
  return *reinterpret_cast<const Header*>(at);
}

/// IPv4 (RFC 791).
template <WalkOf kWhat>
[[nodiscard]] inline IpWalk walk_ipv4(const IpBytes& bytes) {
  const std::uint8_t* const ip = bytes.at;
  IpWalk walk;
  const auto refuse = [&walk](DropReason why) {
    walk.fault = why;
    return walk;
  };
  if (bytes.readable < sizeof(Ipv4Header)) return refuse(DropReason::ipv4_truncated);
  const auto& header = overlay<Ipv4Header>(ip);
  if (header.version() != 4) return refuse(DropReason::ipv4_bad_version);
  walk.source = ip + offsetof(Ipv4Header, source);
  walk.destination = ip + offsetof(Ipv4Header, destination);
  walk.addresses_known = true;

  const std::size_t header_length = header.header_length();
  if (header_length < sizeof(Ipv4Header) || header_length > bytes.readable)
    return refuse(DropReason::ipv4_bad_header_length);
  walk.length = header.total_length.host();
  if (walk.length < header_length) return refuse(DropReason::ipv4_bad_total_length);
  if (kWhat == WalkOf::packet && walk.length > bytes.length)
    return refuse(DropReason::ipv4_bad_total_length);
  walk.end = kWhat == WalkOf::packet ? walk.length : std::min(walk.length, bytes.length);
  walk.readable = std::min(walk.end, bytes.readable);

  const unsigned fragment = header.flags_fragment_offset.host();
  if ((fragment & Ipv4Header::kOffsetMask) != 0)
    walk.part = FragmentPart::later;
  else if ((fragment & Ipv4Header::kMoreFragments) != 0)
    walk.part = FragmentPart::first;
  if (walk.part != FragmentPart::whole) [[unlikely]] {
    walk.more_fragments = (fragment & Ipv4Header::kMoreFragments) != 0;
    walk.fragment_id = header.identification.host();
    walk.fragment_offset = std::size_t{fragment & Ipv4Header::kOffsetMask} * 8;
    walk.fragmentable = header_length;
  }
  walk.dont_fragment = (fragment & Ipv4Header::kDontFragment) != 0;
  walk.traffic_class = header.type_of_service;
  walk.protocol = header.protocol;
  walk.l4 = header_length;
  walk.good = true;
  return walk;
}

/// An IPv6 extension header that the walk goes over. (ESP is none: what is behind it is hidden.)
[[nodiscard]] bool is_extension(IpProtocol protocol);

/// IPv6 (RFC 8200) with its extension headers up to the first one that is none. Behind a later
/// fragment's header nothing is walked: there is payload.
[[nodiscard]] IpWalk walk_ipv6(const IpBytes& bytes, WalkOf what);

}  // namespace holdfast

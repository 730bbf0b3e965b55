// SPDX-License-Identifier: Apache-2.0
// A backend as the workers see it: one membership (pool, address) with its state already reduced to
// what a packet needs to know. Values; built by ctrl/reconcile, read by lb.
#pragma once

#include <cstdint>
#include <string_view>

#include "lib/model/numbers.h"
#include "lib/net/address.h"

namespace holdfast {

/// The states of docs/cli.md's table; a removed backend is simply absent from the snapshot.
enum class BackendState : std::uint8_t {
  eligible,
  weight_zero,       // no new flows, placed ones stay without deadline
  draining,          // no new flows, placed ones stay to the deadline
  down,              // checks failed
  neigh_unresolved,  // its next hop has never been resolved
  next_hop_lost,     // no next hop now; placed flows go to the last known one
  path_too_small,    // its tunnel can not carry 1280 bytes of IPv6, and an IPv6 service uses it
  unchecked,         // not yet checked since the start
};

[[nodiscard]] constexpr std::string_view name_of(BackendState state) {
  switch (state) {
    case BackendState::eligible:
      return "eligible";
    case BackendState::weight_zero:
      return "weight_zero";
    case BackendState::draining:
      return "draining";
    case BackendState::down:
      return "down";
    case BackendState::neigh_unresolved:
      return "neigh_unresolved";
    case BackendState::next_hop_lost:
      return "next_hop_lost";
    case BackendState::path_too_small:
      return "path_too_small";
    case BackendState::unchecked:
      return "unchecked";
  }
  return "?";
}

/// How a packet travels to its backend.
enum class Encapsulation : std::uint8_t {
  ipip,  // RFC 2003, RFC 4213, RFC 2473: nothing but an outer IP header
  gre,   // RFC 2784, without key and checksum
  gue,   // UDP, variant 1: the inner packet directly behind the UDP header
  gue0,  // UDP, variant 0: behind a header of four bytes
};

[[nodiscard]] constexpr std::string_view name_of(Encapsulation encapsulation) {
  switch (encapsulation) {
    case Encapsulation::ipip:
      return "ipip";
    case Encapsulation::gre:
      return "gre";
    case Encapsulation::gue:
      return "gue";
    case Encapsulation::gue0:
      return "gue0";
  }
  return "?";
}

[[nodiscard]] constexpr bool uses_udp(Encapsulation encapsulation) {
  switch (encapsulation) {
    case Encapsulation::ipip:
    case Encapsulation::gre:
      return false;
    case Encapsulation::gue:
    case Encapsulation::gue0:
      return true;
  }
  return false;
}

/// Bytes that the tunnel adds in front of the inner IP packet; `outer` is the backend's family.
[[nodiscard]] constexpr std::uint16_t tunnel_overhead(Encapsulation encapsulation, Family outer) {
  const std::uint16_t ip = outer == Family::ipv4 ? 20 : 40;
  switch (encapsulation) {
    case Encapsulation::ipip:
      return ip;
    case Encapsulation::gre:
      return static_cast<std::uint16_t>(ip + 4);
    case Encapsulation::gue:
      return static_cast<std::uint16_t>(ip + 8);
    case Encapsulation::gue0:
      return static_cast<std::uint16_t>(ip + 12);
  }
  return 0;
}

/// Where the tunnelled packet leaves: one of possibly several ways to a backend.
struct NextHop {
  PortNumber port = kNoPort;
  std::uint16_t vlan = 0;  // VLAN id 1..4094, 0 = untagged
  std::uint16_t mtu = 0;   // IP MTU of the way in bytes, the VLAN tag not counted
  bool sums_udp = false;   // the port fills in UDP checksums
  MacAddress source{};     // the port's own
  MacAddress destination{};

  friend bool operator==(const NextHop&, const NextHop&) = default;
};

/// What the outer header's traffic class (DSCP and ECN) is made of: the bits that are kept of the
/// inner one, and those that are set. ECN is always kept: RFC 6040 4.1, normal mode.
struct OuterClass {
  std::uint8_t kept = 0xff;
  std::uint8_t set = 0;

  /// RFC 2983's pipe model: `dscp` (0..63) whatever the inner packet says. The default is its
  /// uniform model: the fabric treats tunnelled packets as it would the client's.
  [[nodiscard]] static constexpr OuterClass of_dscp(std::uint8_t dscp) {
    return {.kept = 0x03, .set = static_cast<std::uint8_t>(dscp << 2)};
  }
  friend bool operator==(const OuterClass&, const OuterClass&) = default;
};

/// One cache line, so that a packet touches no more than that of it.
struct alignas(64) Backend {
  IpAddress address{};        // outer destination; the backend's identity
  IpAddress tunnel_source{};  // outer source, of the same family
  OuterClass outer_class{};
  PoolNumber pool{};
  BackendState state = BackendState::unchecked;
  Encapsulation encapsulation = Encapsulation::ipip;
  bool present = false;              // false: a hole in the numbering, or removed
  bool keeps_tcp = false;            // placed TCP flows stay; false: re-picked at their next packet
  bool keeps_udp = false;            // the same for UDP
  bool awaits_check = false;         // unchecked, and its base slots wait for its first check
  bool udp6_checksum = true;         // of GUE over IPv6; false: zero (RFC 6935)
  std::uint16_t next_hop_count = 0;  // 0: never resolved
  std::uint32_t first_next_hop = 0;  // index into Snapshot::next_hops
  // The low bits of the outer source that the flow's entropy fills in, as a mask; 0: none.
  std::uint32_t source_spread = 0;

  [[nodiscard]] bool eligible() const { return present && state == BackendState::eligible; }
};
static_assert(sizeof(Backend) == 64);

}  // namespace holdfast

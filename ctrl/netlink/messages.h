// SPDX-License-Identifier: Apache-2.0
// rtnetlink as values: what the kernel says about links, neighbours and routes (rtnetlink(7)), and
// the requests that ask it. Only bytes in and out, no socket; a message that is cut short or
// inconsistent is skipped, never trusted. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "lib/net/address.h"

namespace holdfast::netlink {

struct Link {
  bool deleted = false;
  std::uint32_t index = 0;
  std::string name{};
  MacAddress mac{};
  std::uint32_t mtu = 0;     // IP MTU in bytes
  bool up = false;           // administratively up and with carrier
  std::string kind{};        // "vlan", "vrf", "veth"; empty: a plain device
  std::uint32_t parent = 0;  // index of the device below (VLAN), 0: none, or in another namespace
  std::uint32_t master = 0;  // index of the VRF, bridge or bond it belongs to, 0: none
  std::uint16_t vlan = 0;    // id, for kind "vlan" with 802.1Q
  bool service_tag = false;  // kind "vlan" with 802.1ad
};

struct Neighbour {
  bool deleted = false;
  std::uint32_t link = 0;
  IpAddress address{};
  std::uint16_t state = 0;  // NUD_* of linux/neighbour.h
  MacAddress mac{};         // zero: none known

  /// The MAC may be used: reachable, or was and is not refuted yet.
  [[nodiscard]] bool usable() const;
  /// The kernel is neither sure of it nor finding out: ask it to.
  [[nodiscard]] bool needs_asking() const;
};

struct Hop {
  std::uint32_t link = 0;
  std::optional<IpAddress> gateway{};  // may be of the other family (RFC 8950); none: on the link
  bool dead = false;                   // its link is down

  friend bool operator==(const Hop&, const Hop&) = default;
};

struct Route {
  bool deleted = false;
  std::uint8_t type = 0;  // RTN_* of linux/rtnetlink.h: unicast, local, blackhole, ...
  std::vector<Hop> hops{};
  std::optional<IpAddress> source{};  // preferred source address
  std::uint32_t mtu = 0;              // of the route's metrics, 0: none
};

/// The end of an answer: 0, or an errno value.
struct End {
  int error = 0;
};

struct Message {
  std::uint32_t sequence = 0;  // of the request, 0 for events
  bool interrupted = false;    // the list changed while it was read: ask again
  std::variant<Link, Neighbour, Route, End> body;
};

/// Calls `each` for every message in `bytes` that is understood, in order. `bytes`: what one recv()
/// of a netlink socket gave, at any alignment.
void parse_messages(std::span<const std::byte> bytes,
                    const std::function<void(const Message&)>& each);

// Requests, each a whole message for send().
using Bytes = std::vector<std::byte>;
[[nodiscard]] Bytes request_links(std::uint32_t sequence);
[[nodiscard]] Bytes request_neighbours(std::uint32_t sequence);
/// `fib_match`: the route as it is in the table, with all next hops of a multipath route; else the
/// one way that a packet would take now, with the source address the kernel would choose.
/// `vrf`: index of the VRF to look in, 0: the main one.
[[nodiscard]] Bytes request_route(std::uint32_t sequence, const IpAddress& destination,
                                  bool fib_match, std::uint32_t vrf);
/// Makes the kernel find out the neighbour's MAC, or check it, as if a packet were sent there.
[[nodiscard]] Bytes request_resolution(std::uint32_t sequence, std::uint32_t link,
                                       const IpAddress& address);

}  // namespace holdfast::netlink

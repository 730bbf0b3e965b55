// SPDX-License-Identifier: Apache-2.0
// The contract of an encapsulation: how many bytes it puts before a packet (tunnel_overhead in
// lib/model/backend.h, which control needs too) and what stands in them. Pure, bytes only; workers
// call it. A new one: a value of Encapsulation, its overhead, a file here, a case in encap.cc.
#pragma once

#include <cstdint>

#include "lib/model/backend.h"
#include "lib/net/parse.h"

namespace holdfast {

/// Written into every outer header, whatever the inner one says: the tunnel is one hop for the
/// client's packet, and must reach the backend however far it is (RFC 2473 6.3).
inline constexpr std::uint8_t kOuterTimeToLive = 64;

/// What an outer header is made of.
struct Tunnel {
  const Backend& backend;      // outer addresses
  const ParsedPacket& packet;  // inner family, length, DSCP and ECN
  std::uint32_t entropy = 0;   // of the inner flow: flow_entropy()
};

/// Fills the tunnel_overhead() bytes at `at`, up to the inner IP header.
/// Requires: packet.ip_length + tunnel_overhead() <= 65535.
void write_tunnel(std::uint8_t* at, const Tunnel& tunnel) noexcept;

}  // namespace holdfast

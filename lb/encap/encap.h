// SPDX-License-Identifier: Apache-2.0
// The contract of an encapsulation: how many bytes it puts before a packet (tunnel_overhead in
// lib/model/backend.h, which control needs too) and what stands in them. Pure, bytes only; workers
// call it. A new one: a value of Encapsulation, its overhead, a file here, a case below. All of it
// is inline: a header is twenty stores, and a call costs as much.
#pragma once

#include "lb/encap/ipip.h"
#include "lb/encap/tunnel.h"

namespace holdfast {

/// Fills the tunnel_overhead() bytes at `at`, up to the inner IP header. `kOuter`: the family of
/// the backend's address. Requires: packet.ip_length + tunnel_overhead() <= 65535.
template <Family kOuter>
inline void write_tunnel(std::uint8_t* at, const Tunnel& tunnel) noexcept {
  switch (tunnel.backend.encapsulation) {
    case Encapsulation::ipip:
      write_ipip<kOuter>(at, tunnel);
      return;
  }
}

}  // namespace holdfast

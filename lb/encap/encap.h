// SPDX-License-Identifier: Apache-2.0
// The contract of an encapsulation: how many bytes it puts before a packet (tunnel_overhead in
// lib/model/backend.h, which control needs too) and what stands in them. It touches nothing but
// those bytes and, of the mbuf, what the port shall fill in; workers call it. A new one: a value of
// Encapsulation, its overhead, a file here, a case below. All of it is inline: a header is twenty
// stores, and a call costs as much.
#pragma once

#include "lb/encap/gre.h"
#include "lb/encap/gue.h"
#include "lb/encap/gue0.h"
#include "lb/encap/ipip.h"
#include "lb/encap/tunnel.h"

namespace holdfast {

/// Fills the tunnel_overhead() bytes at `at`, up to the inner IP header. `kOuter`: the family of
/// the backend's address. Requires: packet.ip_length + tunnel_overhead() <= 65535; the inner packet
/// is as it will leave.
template <Family kOuter>
inline void write_tunnel(std::uint8_t* at, const Tunnel& tunnel) noexcept {
  switch (tunnel.backend.encapsulation) {
    [[likely]] case Encapsulation::ipip : write_ipip<kOuter>(at, tunnel);
    return;
    case Encapsulation::gre:
      write_gre<kOuter>(at, tunnel);
      return;
    case Encapsulation::gue:
      write_gue<kOuter>(at, tunnel);
      return;
    case Encapsulation::gue0:
      write_gue0<kOuter>(at, tunnel);
      return;
  }
}

}  // namespace holdfast

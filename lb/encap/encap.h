// SPDX-License-Identifier: Apache-2.0
// The contract of an encapsulation: how many bytes it puts before a packet (tunnel_overhead in
// lib/model/backend.h, which control needs too) and what stands in them. It touches nothing but
// those bytes and, of the mbuf, what the port shall fill in; workers call it. A new one: a value of
// Encapsulation, its overhead, a file here, a case in both functions below. All of it is inline: a
// header is twenty stores, and a call costs as much.
#pragma once

#include <type_traits>

#include "lb/encap/gre.h"
#include "lb/encap/gue.h"
#include "lb/encap/gue0.h"
#include "lb/encap/ipip.h"
#include "lb/encap/tunnel.h"

namespace holdfast {

/// Calls visit() with the encapsulation as a constant: behind this one branch all lengths are known
/// when it is compiled.
template <class Visitor>
inline auto with_encapsulation(Encapsulation encapsulation, Visitor&& visit) noexcept {
  using enum Encapsulation;
  switch (encapsulation) {
    [[likely]] case ipip : break;
    case gre:
      return visit(std::integral_constant<Encapsulation, gre>{});
    case gue:
      return visit(std::integral_constant<Encapsulation, gue>{});
    case gue0:
      return visit(std::integral_constant<Encapsulation, gue0>{});
  }
  return visit(std::integral_constant<Encapsulation, ipip>{});
}

/// Fills the tunnel_overhead() bytes at `at`, up to the inner IP header. `kOuter`: the family of
/// the backend's address, `kHow`: its encapsulation. Requires: packet.ip_length + tunnel_overhead()
/// <= 65535; the inner packet is as it will leave.
template <Family kOuter, Encapsulation kHow>
inline void write_tunnel(std::uint8_t* at, const Tunnel& tunnel) noexcept {
  switch (kHow) {
    case Encapsulation::ipip:
      return write_ipip<kOuter>(at, tunnel);
    case Encapsulation::gre:
      return write_gre<kOuter>(at, tunnel);
    case Encapsulation::gue:
      return write_gue<kOuter>(at, tunnel);
    case Encapsulation::gue0:
      return write_gue0<kOuter>(at, tunnel);
  }
}

}  // namespace holdfast

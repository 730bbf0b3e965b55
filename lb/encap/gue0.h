// SPDX-License-Identifier: Apache-2.0
// Generic UDP Encapsulation (draft-ietf-intarea-gue), variant 0: between the UDP header and the
// inner packet lie four bytes that name the inner protocol; no flags, no extensions, no private
// data. Workers call it through encap.h.
#pragma once

#include "lb/encap/outer_udp.h"

namespace holdfast {

template <Family kOuter>
inline void write_gue0(std::uint8_t* at, const Tunnel& tunnel) noexcept {
  // First, for the checksum covers it.
  new (at + kOuterIpSize<kOuter> + sizeof(UdpHeader))
      Gue0Header{.version_length = 0, .protocol = protocol_of(tunnel.packet.family), .flags = {}};
  write_outer_udp<kOuter>(at, tunnel, sizeof(Gue0Header));
}

}  // namespace holdfast

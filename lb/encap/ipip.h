// SPDX-License-Identifier: Apache-2.0
// IP in IP, in all four mixes of families: RFC 2003 (4 in 4), RFC 4213 (6 in 4), RFC 2473 (4 and 6
// in 6). Nothing but an outer header. Pure; workers call it through encap.h.
#pragma once

#include "lb/encap/outer_ip.h"

namespace holdfast {

template <Family kOuter>
inline void write_ipip(std::uint8_t* at, const Tunnel& tunnel) noexcept {
  write_outer_ip<kOuter>(at, tunnel, protocol_of(tunnel.packet.family), 0);
}

}  // namespace holdfast

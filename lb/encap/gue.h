// SPDX-License-Identifier: Apache-2.0
// Generic UDP Encapsulation (draft-ietf-intarea-gue), variant 1: the inner IP packet directly
// behind a UDP header, whose source port carries the flow's entropy. Pure but for what is left to
// the port (outer_udp.h); workers call it through encap.h.
#pragma once

#include "lb/encap/outer_udp.h"

namespace holdfast {

template <Family kOuter>
inline void write_gue(std::uint8_t* at, const Tunnel& tunnel) noexcept {
  write_outer_udp<kOuter>(at, tunnel, 0);
}

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// What an encapsulation is made of. Pure values.
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

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// What an encapsulation is made of. Values; lives while one packet is encapsulated.
#pragma once

#include <rte_mbuf.h>

#include <cstdint>

#include "lib/model/backend.h"
#include "lib/net/parse.h"

namespace holdfast {

struct Tunnel {
  const Backend& backend;      // outer addresses, traffic class, checksum
  const ParsedPacket& packet;  // of the inner packet: family, kind, part, length, DSCP and ECN
  std::uint32_t entropy = 0;   // of the inner flow: flow_entropy()
  /// The buffer that the header is written into, the inner packet behind it and, if it has more
  /// segments, in those; its data begins with the Ethernet header. An encapsulation that leaves its
  /// checksum to the port says so here.
  rte_mbuf& mbuf;
  bool port_sums_udp = false;  // NextHop::sums_udp
};

}  // namespace holdfast

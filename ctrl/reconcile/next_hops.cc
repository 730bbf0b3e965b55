// SPDX-License-Identifier: Apache-2.0
#include "ctrl/reconcile/next_hops.h"

#include <fmt/format.h>

namespace holdfast {

ResolvedRoute fixed_route(const StaticNextHop& next_hop, std::span<const PortDescription> ports) {
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (ports[i].name != next_hop.port) continue;
    return {.next_hops = {{.port = static_cast<PortNumber>(i),
                           .vlan = next_hop.vlan,
                           .mtu = next_hop.mtu,
                           .sums_udp = ports[i].sums_udp,
                           .source = ports[i].mac,
                           .destination = next_hop.mac}}};
  }
  return {.problem = fmt::format("there is no port \"{}\"", next_hop.port)};
}

}  // namespace holdfast

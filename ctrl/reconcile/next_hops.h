// SPDX-License-Identifier: Apache-2.0
// How a backend is reached, as the netlink side reports it and as a fixed `next_hop` in the
// configuration says it. Values; filled by the control thread, read by reconcile.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lib/config/config.h"
#include "lib/model/backend.h"
#include "lib/model/seam.h"

namespace holdfast {

/// The kernel's present answer for one backend address. Reconcile remembers the last one that had
/// next hops; a route that is gone is reported as an empty one with its `problem`.
struct ResolvedRoute {
  std::vector<NextHop> next_hops{};  // only those whose neighbour's MAC is known; all complete
  IpAddress tunnel_source{};  // the egress interface's, of the backend's family; unspecified:
                              // it has none
  std::string problem{};      // why next_hops is empty: "no route", "10.0.0.3 does not answer
                              // on eth1"; without a full stop
};

/// The route that `next_hop` of the configuration stands for. tunnel_source stays unspecified.
[[nodiscard]] ResolvedRoute fixed_route(const StaticNextHop& next_hop,
                                        std::span<const PortDescription> ports);

}  // namespace holdfast

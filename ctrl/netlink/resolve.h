// SPDX-License-Identifier: Apache-2.0
// From what the kernel says (route, links, neighbours) to the next hops of one backend. Pure; any
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ctrl/netlink/kernel_view.h"
#include "ctrl/netlink/messages.h"
#include "ctrl/reconcile/next_hops.h"
#include "lib/model/seam.h"

namespace holdfast::netlink {

/// The kernel's answer to "how is this address reached", in one routing domain.
struct RouteAnswer {
  int error = 0;                      // errno; 0: `route` is there
  Route route{};                      // of the table, with all next hops
  std::optional<IpAddress> source{};  // that the kernel would choose for a packet of its own
};

struct Resolution {
  ResolvedRoute route{};
  std::vector<NeighbourKey> neighbours{};  // that it rests on, known or not
};

/// Next hops that leave by a link which is no port, is down, or has no usable neighbour are left
/// out; with none left, the first of their problems is told.
[[nodiscard]] Resolution resolve(const IpAddress& backend, const RouteAnswer& answer,
                                 const KernelView& view, std::span<const PortDescription> ports);

/// The VRFs in which routes must be looked up: that of each port's interface and of the VLAN
/// sub-interfaces on it; 0 is the main domain. Main first, without repetition; empty: no port has
/// an interface.
[[nodiscard]] std::vector<std::uint32_t> routing_domains(const KernelView& view,
                                                         std::span<const PortDescription> ports);

}  // namespace holdfast::netlink

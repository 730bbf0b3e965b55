// SPDX-License-Identifier: Apache-2.0
// From the kernel's answer about a backend's address to the way that tunnelled packets take: what
// was known last when there is nothing now, the tunnel's source, and whether IPv6 fits. Pure; any
// thread.
#pragma once

#include <optional>
#include <span>

#include "ctrl/reconcile/next_hops.h"
#include "ctrl/state/backend_state.h"

namespace holdfast {

struct BackendPath {
  PathState state = PathState::never;
  ResolvedRoute route{};  // what to send by; empty when never. `problem`: why it is not usable
};

struct PathNeeds {
  Family family = Family::ipv4;                  // of the backend
  std::optional<IpAddress> configured_source{};  // goes before the route's own
  std::uint32_t minimum_mtu = 0;                 // IP MTU in bytes; 0: any will do
  std::span<const PortDescription> ports{};      // for names in `problem`
};

/// `last_known`: the last route that had next hops, null when there never was one.
[[nodiscard]] BackendPath find_path(const ResolvedRoute& current, const ResolvedRoute* last_known,
                                    const PathNeeds& needs);

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// From the kernel's answer about a backend's address to the way that tunnelled packets take: what
// was known last when there is nothing now, the tunnel's source, and whether IPv6, and the longest
// packets of clients, fit. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "ctrl/path_mtu/path_mtus.h"
#include "ctrl/reconcile/next_hops.h"
#include "ctrl/state/backend_state.h"

namespace holdfast {

/// What a router on the way said, where it is less than the next hop's MTU.
struct PathMtu {
  std::uint16_t mtu = 0;  // of the outer packet, IP bytes
  IpAddress router{};

  friend bool operator==(const PathMtu&, const PathMtu&) = default;
};

struct BackendPath {
  PathState state = PathState::never;
  ResolvedRoute route{};  // what to send by; empty when never. `problem`: why it is not usable
                          // (MTUs as lowered by `path_mtu`)
  std::string warning{};  // what the way can not carry, though it is used; empty: all fits
  std::optional<PathMtu> path_mtu{};
};

struct PathNeeds {
  Family family = Family::ipv4;                  // of the backend
  std::optional<IpAddress> configured_source{};  // goes before the route's own
  std::uint32_t minimum_mtu = 0;                 // IP MTU in bytes; 0: any will do
  std::uint32_t client_mtu = 0;                  // the longest packet of clients, IP bytes
  std::uint32_t header = 0;                      // what the tunnel adds to it
  const LearnedMtu* learned = nullptr;           // what a router said; null: nothing
  std::span<const PortDescription> ports{};      // for names in `problem`
};

/// `last_known`: the last route that had next hops, null when there never was one.
[[nodiscard]] BackendPath find_path(const ResolvedRoute& current, const ResolvedRoute* last_known,
                                    const PathNeeds& needs);

}  // namespace holdfast

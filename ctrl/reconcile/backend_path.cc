// SPDX-License-Identifier: Apache-2.0
#include "ctrl/reconcile/backend_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace holdfast {

namespace {

std::string_view port_name(std::span<const PortDescription> ports, PortNumber port) {
  const auto i = index_of(port);
  return i < ports.size() ? std::string_view(ports[i].name) : "an unknown port";
}

std::string no_source(const PathNeeds& needs, PortNumber port) {
  const bool v4 = needs.family == Family::ipv4;
  const auto i = index_of(port);
  // Only an interface of the kernel can have addresses.
  const bool kernel = i < needs.ports.size() && !needs.ports[i].interface.empty();
  return fmt::format("no {} source for the tunnel: set tunnel_source_{}{}", v4 ? "IPv4" : "IPv6",
                     v4 ? "v4" : "v6",
                     kernel ? fmt::format(", or give {} an {} address", needs.ports[i].interface,
                                          v4 ? "IPv4" : "IPv6")
                            : "");
}

/// Lowers the MTUs of all ways to what a router said. Nothing: it makes no difference to any.
std::optional<PathMtu> apply_learned(std::vector<NextHop>& ways, const PathNeeds& needs) {
  if (needs.learned == nullptr) return std::nullopt;
  const std::uint16_t mtu = needs.learned->mtu;
  if (std::all_of(ways.begin(), ways.end(), [mtu](const NextHop& way) { return way.mtu <= mtu; }))
    return std::nullopt;
  for (NextHop& way : ways) way.mtu = std::min(way.mtu, mtu);
  return PathMtu{mtu, needs.learned->router};
}

/// Empty: the longest packets of clients fit.
std::string too_narrow(const NextHop& way, const PathNeeds& needs,
                       const std::optional<PathMtu>& said) {
  const std::uint32_t needed = needs.client_mtu + needs.header;
  if (way.mtu >= needed) return {};
  const bool by_router = said && said->mtu == way.mtu;
  return fmt::format(
      "{} is {}, so packets of clients above {} bytes are answered with Packet Too Big, or "
      "fragmented: raise it to {} on links and routes, or lower client_mtu ({}) if that is meant",
      by_router ? fmt::format("router {} says that the path MTU", said->router.text())
                : fmt::format("the MTU by {}", port_name(needs.ports, way.port)),
      way.mtu, way.mtu - std::min<std::uint32_t>(way.mtu, needs.header), needed, needs.client_mtu);
}

}  // namespace

BackendPath find_path(const ResolvedRoute& current, const ResolvedRoute* last_known,
                      const PathNeeds& needs) {
  const bool lost = current.next_hops.empty();
  if (lost && last_known == nullptr) return {PathState::never, {.problem = current.problem}};

  BackendPath path{lost ? PathState::lost : PathState::usable, lost ? *last_known : current};
  path.route.problem = lost ? current.problem : std::string{};
  if (needs.configured_source) path.route.tunnel_source = *needs.configured_source;
  // Without a source nothing can be sent: the same as no next hop.
  if (path.route.tunnel_source.is_unspecified())
    return {PathState::never, {.problem = no_source(needs, path.route.next_hops[0].port)}};

  path.path_mtu = apply_learned(path.route.next_hops, needs);
  // Any of several next hops may be chosen for a flow, so the smallest decides.
  const auto smallest =
      std::min_element(path.route.next_hops.begin(), path.route.next_hops.end(),
                       [](const NextHop& a, const NextHop& b) { return a.mtu < b.mtu; });
  // Also of a lost way: what it could not carry is no news when it is back.
  path.warning = too_narrow(*smallest, needs, path.path_mtu);
  if (lost) return path;
  if (smallest->mtu < needs.minimum_mtu) {
    path.state = PathState::too_small;
    path.route.problem =
        fmt::format("the MTU by {} is {}, {} are needed", port_name(needs.ports, smallest->port),
                    smallest->mtu, needs.minimum_mtu);
  }
  return path;
}

}  // namespace holdfast

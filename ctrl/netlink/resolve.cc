// SPDX-License-Identifier: Apache-2.0
#include "ctrl/netlink/resolve.h"

#include <fmt/format.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <system_error>

namespace holdfast::netlink {
namespace {

/// Which port a link is, or which VLAN of one.
struct Egress {
  PortNumber port = kNoPort;
  std::uint16_t vlan = 0;
  std::uint32_t mtu = 0;
};

std::optional<PortNumber> port_of(std::uint32_t link, std::span<const PortDescription> ports) {
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (ports[i].interface_index != 0 && ports[i].interface_index == link) {
      return static_cast<PortNumber>(i);
    }
  }
  return std::nullopt;
}

std::optional<Egress> egress_of(const Link& link, std::span<const PortDescription> ports) {
  if (const auto port = port_of(link.index, ports)) {
    return Egress{.port = *port,
                  .mtu = std::min<std::uint32_t>(link.mtu, ports[index_of(*port)].mtu)};
  }
  // One 802.1Q tag is what a next hop can carry.
  if (link.kind != "vlan" || link.service_tag || link.vlan == 0) return std::nullopt;
  const auto port = port_of(link.parent, ports);
  if (!port) return std::nullopt;
  return Egress{.port = *port,
                .vlan = link.vlan,
                .mtu = std::min<std::uint32_t>(link.mtu, ports[index_of(*port)].mtu)};
}

/// Why a route of this type leads nowhere, or empty.
std::string type_problem(std::uint8_t type) {
  switch (type) {
    case RTN_UNICAST:
      return {};
    case RTN_LOCAL:
      return "its address is one of this host's own";
    case RTN_BLACKHOLE:
    case RTN_UNREACHABLE:
    case RTN_PROHIBIT:
      return "its route says that it can not be reached";
    default:
      return "its address is not that of one host";
  }
}

std::string error_problem(int error) {
  switch (error) {
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ESRCH:
      return "no route: add one that leaves by a port (`ip route add`)";
    case EACCES:
    case EINVAL:
      return "its route says that it can not be reached";
    default:
      return fmt::format("its route can not be read ({})", std::generic_category().message(error));
  }
}

/// One hop as a NextHop, or why it is none.
struct HopResult {
  std::optional<NextHop> next_hop{};
  std::optional<NeighbourKey> neighbour{};
  std::string problem{};
};

HopResult resolve_hop(const IpAddress& backend, const Hop& hop, std::uint32_t route_mtu,
                      const KernelView& view, std::span<const PortDescription> ports) {
  const Link* link = view.link(hop.link);
  if (link == nullptr) return {.problem = "its route leaves by an interface that is gone"};
  const auto egress = egress_of(*link, ports);
  if (!egress) {
    return {.problem =
                fmt::format("its route leaves by {}, which is no port of [dataplane]", link->name)};
  }
  if (hop.dead || !link->up) return {.problem = fmt::format("{} is down", link->name)};

  const NeighbourKey key{link->index, hop.gateway.value_or(backend)};
  const Neighbour* neighbour = view.neighbour(key);
  if (neighbour == nullptr || !neighbour->usable()) {
    const bool failed = neighbour != nullptr && (neighbour->state & NUD_FAILED) != 0;
    const std::string_view what = failed ? "does not answer" : "has not answered yet";
    return {.neighbour = key,
            .problem = fmt::format("{} {} on {}: check that it is up and on that link",
                                   key.address.text(), what, link->name)};
  }
  auto mtu = std::min<std::uint32_t>(egress->mtu, std::numeric_limits<std::uint16_t>::max());
  if (route_mtu != 0) mtu = std::min(mtu, route_mtu);
  return {.next_hop = NextHop{.port = egress->port,
                              .vlan = egress->vlan,
                              .mtu = static_cast<std::uint16_t>(mtu),
                              .sums_udp = ports[index_of(egress->port)].sums_udp,
                              .source = link->mac,
                              .destination = neighbour->mac},
          .neighbour = key};
}

}  // namespace

Resolution resolve(const IpAddress& backend, const RouteAnswer& answer, const KernelView& view,
                   std::span<const PortDescription> ports) {
  Resolution resolution;
  auto& problem = resolution.route.problem;
  if (answer.error != 0) {
    problem = error_problem(answer.error);
    return resolution;
  }
  if (problem = type_problem(answer.route.type); !problem.empty()) return resolution;
  if (answer.route.hops.empty()) {
    problem = "its route has no next hop";
    return resolution;
  }
  for (const auto& hop : answer.route.hops) {
    auto result = resolve_hop(backend, hop, answer.route.mtu, view, ports);
    if (result.next_hop) resolution.route.next_hops.push_back(*result.next_hop);
    if (result.neighbour) resolution.neighbours.push_back(*result.neighbour);
    if (problem.empty()) problem = std::move(result.problem);
  }
  if (!resolution.route.next_hops.empty()) problem.clear();
  const auto source = answer.route.source ? answer.route.source : answer.source;
  if (source && source->family() == backend.family()) resolution.route.tunnel_source = *source;
  return resolution;
}

std::vector<std::uint32_t> routing_domains(const KernelView& view,
                                           std::span<const PortDescription> ports) {
  std::set<std::uint32_t> domains;  // sorted: 0, the main domain, comes first
  for (const auto& [index, link] : view.links()) {
    if (!egress_of(link, ports)) continue;
    const Link* master = view.link(link.master);
    domains.insert(master != nullptr && master->kind == "vrf" ? master->index : 0);
  }
  return {domains.begin(), domains.end()};
}

}  // namespace holdfast::netlink

// SPDX-License-Identifier: Apache-2.0
#include "ctrl/path_mtu/tunnels.h"

namespace holdfast {
namespace {

bool may_come_of(Encapsulation encapsulation, const OuterQuote& quote) {
  switch (encapsulation) {
    case Encapsulation::ipip:
      return quote.protocol == IpProtocol::ipv4 || quote.protocol == IpProtocol::ipv6;
    case Encapsulation::gre:
      return quote.protocol == IpProtocol::gre;
    case Encapsulation::gue:
    case Encapsulation::gue0:
      return quote.protocol == IpProtocol::udp &&
             quote.destination_port.host() == Gue0Header::kPort;
  }
  return false;
}

bool may_have_sent(const Tunnels::Tunnel& tunnel, const OuterQuote& quote) {
  const bool source =
      tunnel.sources ? tunnel.sources->contains(quote.source) : tunnel.source == quote.source;
  return source && may_come_of(tunnel.encapsulation, quote);
}

/// Where the outer source is one of a prefix for each flow.
std::optional<Prefix> spread_sources(const DataplaneConfig& config, Encapsulation encapsulation,
                                     const IpAddress& backend) {
  if (encapsulation != Encapsulation::ipip) return std::nullopt;
  return backend.is_v4() ? config.ipip_spread_v4 : config.ipip_spread_v6;
}

}  // namespace

Tunnels::Tunnels(const Config& config, const std::vector<PoolReport>& reports) {
  for (const PoolReport& report : reports) {
    const PoolConfig* const pool = config.pool(report.name);
    if (pool == nullptr) continue;
    for (const BackendReport& backend : report.backends) {
      if (backend.tunnel_source.is_unspecified()) continue;  // nothing was ever sent
      by_backend_.emplace(
          backend.address,
          Tunnel{.pool = pool->name,
                 .encapsulation = pool->encapsulation,
                 .source = backend.tunnel_source,
                 .sources = spread_sources(config.dataplane, pool->encapsulation, backend.address),
                 .minimum_mtu = backend.minimum_mtu,
                 .way_mtu = backend.way_mtu});
    }
  }
}

std::vector<const Tunnels::Tunnel*> Tunnels::of(const OuterQuote& quote) const {
  std::vector<const Tunnel*> tunnels;
  bool ours = false;
  const auto [first, last] = by_backend_.equal_range(quote.destination);
  for (auto it = first; it != last; ++it) {
    tunnels.push_back(&it->second);
    ours = ours || may_have_sent(it->second, quote);
  }
  if (!ours) tunnels.clear();
  return tunnels;
}

}  // namespace holdfast

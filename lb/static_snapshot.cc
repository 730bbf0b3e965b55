// SPDX-License-Identifier: Apache-2.0
#include "lb/static_snapshot.h"

#include <algorithm>
#include <vector>

#include "lib/maglev/maglev.h"

namespace holdfast {
namespace {

void add_backend(Snapshot& snapshot, const BackendConfig& wanted, PoolNumber pool,
                 const DataplaneConfig& dataplane, std::span<const PortDescription> ports) {
  Backend backend{.address = wanted.address,
                  .pool = pool,
                  .state = BackendState::eligible,
                  .present = true,
                  .keeps_tcp = true,
                  .keeps_udp = true,
                  .first_next_hop = static_cast<std::uint32_t>(snapshot.next_hops.size())};
  const auto& source =
      wanted.address.is_v4() ? dataplane.tunnel_source_v4 : dataplane.tunnel_source_v6;
  if (source) backend.tunnel_source = *source;
  if (wanted.next_hop) {
    const auto port = std::find_if(ports.begin(), ports.end(), [&](const PortDescription& p) {
      return p.name == wanted.next_hop->port;
    });
    backend.next_hop_count = 1;
    snapshot.next_hops.push_back({.port = static_cast<PortNumber>(port - ports.begin()),
                                  .vlan = wanted.next_hop->vlan,
                                  .mtu = wanted.next_hop->mtu,
                                  .source = port->mac,
                                  .destination = wanted.next_hop->mac});
  }
  snapshot.backends.push_back(backend);
}

}  // namespace

std::unique_ptr<const Snapshot> static_snapshot(const Config& config, HashSeed seed,
                                                std::span<const PortDescription> ports) {
  auto snapshot = std::make_unique<Snapshot>();
  snapshot->generation = 1;
  snapshot->seed = seed;
  for (std::size_t p = 0; p < config.pools.size(); ++p) {
    const PoolConfig& wanted = config.pools[p];
    const auto first = snapshot->backends.size();
    std::vector<MaglevBackend> backends;
    for (const BackendConfig& backend : wanted.backends) {
      backends.push_back({backend.address, backend.weight});
      add_backend(*snapshot, backend, static_cast<PoolNumber>(p), config.dataplane, ports);
    }
    auto slots = std::make_shared<SlotTable>();
    for (const std::uint16_t index : build_maglev(backends, seed, wanted.table_size))
      slots->push_back(static_cast<BackendNumber>(first + index));
    snapshot->pools.push_back({.present = true, .base = slots, .effective = slots});
  }
  std::vector<IpAddress> vips;
  for (const VipConfig& vip : config.vips) vips.push_back(vip.address);
  std::vector<ServiceRule> rules;
  for (std::size_t s = 0; s < config.services.size(); ++s) {
    const ServiceConfig& wanted = config.services[s];
    const auto pool = std::find_if(config.pools.begin(), config.pools.end(),
                                   [&](const PoolConfig& p) { return p.name == wanted.pool; });
    snapshot->services.push_back({.present = true,
                                  .protocol = wanted.protocol,
                                  .pool = static_cast<PoolNumber>(pool - config.pools.begin()),
                                  .timeouts = wanted.timeouts,
                                  .max_share = wanted.max_share,
                                  .embryonic_share = wanted.embryonic_share,
                                  .udp_repick_on_drain = wanted.udp_repick_on_drain});
    for (const IpAddress& vip : wanted.vips)
      rules.push_back({vip, wanted.protocol, wanted.ports, static_cast<ServiceNumber>(s)});
  }
  snapshot->service_table = ServiceTable(vips, rules);
  return snapshot;
}

}  // namespace holdfast

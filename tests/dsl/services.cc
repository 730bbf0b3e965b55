// SPDX-License-Identifier: Apache-2.0
#include "tests/dsl/services.h"

#include <algorithm>
#include <map>

#include "lib/maglev/maglev.h"

namespace holdfast::dsl {

namespace {

/// Prime, small, and large enough for the few backends of a test.
constexpr std::uint32_t kTableSize = 1021;

template <class Number>
Number number_of(std::size_t index) {
  return static_cast<Number>(index);
}

/// Indices into the pool's backends -> backend numbers.
std::shared_ptr<const SlotTable> numbered(const MaglevTable& table,
                                          const std::vector<BackendNumber>& numbers) {
  auto slots = std::make_shared<SlotTable>();
  for (const std::uint16_t owner : table) slots->push_back(numbers[owner]);
  return slots;
}

Backend add_backend(Snapshot& snapshot, const BackendSpec& spec, const ServiceSpec& service,
                    PoolNumber pool) {
  Backend backend{
      .address = spec.address,
      .tunnel_source = spec.address.is_v4() ? service.tunnel.source_v4 : service.tunnel.source_v6,
      .outer_class = service.tunnel.dscp ? OuterClass::of_dscp(*service.tunnel.dscp) : OuterClass{},
      .pool = pool,
      .state = spec.state,
      .encapsulation = service.tunnel.encapsulation,
      .present = !spec.removed,
      .keeps_tcp = spec.keeps_tcp,
      .keeps_udp = spec.keeps_udp,
      .awaits_check = spec.state == BackendState::unchecked && spec.awaits_check,
      .udp6_checksum = service.tunnel.udp6_checksum,
      .next_hop_count = static_cast<std::uint16_t>(spec.hops.size()),
      .first_next_hop = static_cast<std::uint32_t>(snapshot.next_hops.size()),
      .source_spread = service.tunnel.source_spread,
  };
  for (const Hop& hop : spec.hops)
    snapshot.next_hops.push_back({.port = PortNumber{hop.port},
                                  .vlan = hop.vlan,
                                  .mtu = hop.mtu,
                                  .sums_udp = hop.sums_udp,
                                  .source = hop.src,
                                  .destination = hop.dst});
  return backend;
}

Pool build_pool(Snapshot& snapshot, const ServiceSpec& service, PoolNumber number, HashSeed seed) {
  std::vector<MaglevBackend> members;
  std::vector<BackendNumber> numbers;
  std::vector<bool> eligible;
  std::vector<bool> draining;
  for (const BackendSpec& spec : service.backends) {
    const Backend backend = add_backend(snapshot, spec, service, number);
    if (backend.present) {
      members.push_back({spec.address, spec.weight});
      numbers.push_back(number_of<BackendNumber>(snapshot.backends.size()));
      eligible.push_back(backend.eligible());
      draining.push_back(backend.state == BackendState::draining);
    }
    snapshot.backends.push_back(backend);
  }
  const MaglevTable base = build_maglev(members, seed, kTableSize);
  const bool draining_only = std::ranges::find(eligible, true) == eligible.end();
  return {.present = true,
          .base = numbered(base, numbers),
          .effective = numbered(
              overlay_maglev(base, members, draining_only ? draining : eligible, seed), numbers)};
}

}  // namespace

std::unique_ptr<const Snapshot> build_snapshot(const std::vector<ServiceSpec>& services,
                                               HashSeed seed) {
  auto snapshot = std::make_unique<Snapshot>();
  snapshot->generation = 1;
  snapshot->seed = seed;
  std::vector<ServiceRule> rules;
  std::map<IpAddress, VipOptions> vips;
  for (const ServiceSpec& spec : services) {
    const auto service_number = number_of<ServiceNumber>(snapshot->services.size());
    const auto pool_number = number_of<PoolNumber>(snapshot->pools.size());
    for (const Ip& vip : spec.vips) {
      auto& options = vips[vip];
      options.echo = options.echo && spec.manners.echo;
      options.reject_unknown_port = options.reject_unknown_port || spec.manners.reject_unknown_port;
    }
    for (const Ip& vip : spec.vips)
      rules.push_back({vip, spec.ports.protocol, spec.ports.range, service_number});
    Service service = spec.settings;
    service.present = true;
    service.protocol = spec.ports.protocol;
    service.pool = pool_number;
    snapshot->services.push_back(service);
    snapshot->pools.push_back(build_pool(*snapshot, spec, pool_number, seed));
  }
  std::vector<VipEntry> entries;
  for (const auto& [address, options] : vips) entries.push_back({address, options});
  snapshot->service_table = ServiceTable(entries, rules);
  return snapshot;
}

}  // namespace holdfast::dsl

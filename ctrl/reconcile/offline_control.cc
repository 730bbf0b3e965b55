// SPDX-License-Identifier: Apache-2.0
#include "ctrl/reconcile/offline_control.h"

#include <algorithm>
#include <utility>

namespace holdfast {
namespace {

/// RFC 8200 section 5: what every link carries, so that IPv6 services find their backends eligible.
constexpr std::uint32_t kIpv6MinimumMtu = 1280;

MacAddress port_mac(std::size_t number) {
  MacAddress mac = kAssumedPortMac;
  mac.bytes[5] = static_cast<std::uint8_t>(mac.bytes[5] + number);
  return mac;
}

}  // namespace

Result<OfflineControl> OfflineControl::start(Config config, HashSeed seed,
                                             const Assumptions& assumptions, Instant now) {
  OfflineControl control(std::move(config), seed);
  if (auto followed = control.follow(now); !followed) return tl::unexpected(followed.error());

  const auto reports = reconcile(control.config_, seed, control.state_, control.memory_, now).pools;
  for (const std::string& name : assumptions.drained) {
    const auto selected = select_backends(reports, name);
    if (!selected) return tl::unexpected(selected.error());
    for (const SelectedBackend& one : *selected)
      control.state_.memberships.at(one.key()).drain.start(now, std::nullopt);
  }
  for (const std::string& name : assumptions.down) {
    const auto selected = select_backends(reports, name);
    if (!selected) return tl::unexpected(selected.error());
    for (const SelectedBackend& one : *selected) control.down_.push_back(one.key());
  }
  control.assume_health(now);
  return control;
}

Result<void> OfflineControl::apply(Config config, Instant now) {
  std::swap(config_, config);
  if (auto followed = follow(now); !followed) {
    std::swap(config_, config);
    return followed;
  }
  changed_ = true;
  return {};
}

Result<void> OfflineControl::follow(Instant now) {
  if (auto followed = follow_config(state_, config_, now); !followed) return followed;
  assume_ports_and_routes();
  assume_health(now);
  return {};
}

void OfflineControl::assume_ports_and_routes() {
  state_.ports.clear();
  for (const PortConfig& port : config_.dataplane.ports) {
    PortDescription& description = state_.ports.emplace_back();
    description.name = port.name;
    description.mac = port_mac(state_.ports.size() - 1);
  }

  state_.routes.clear();
  for (const PoolConfig& pool : config_.pools) {
    for (const BackendConfig& backend : pool.backends) {
      const bool v4 = backend.address.is_v4();
      const std::uint32_t mtu =
          std::max<std::uint32_t>(config_.dataplane.client_mtu, kIpv6MinimumMtu) +
          tunnel_overhead(pool.encapsulation, backend.address.family());
      auto& route = state_.routes[backend.address];
      if (route.next_hops.empty())
        route = {
            .next_hops = {{.port = PortNumber{0},
                           .source = port_mac(0),
                           .destination = kAssumedRouterMac}},
            .tunnel_source = IpAddress::parse(v4 ? kAssumedSourceV4 : kAssumedSourceV6).value()};
      // Of several pools that have the backend, the longest header counts.
      NextHop& hop = route.next_hops.front();
      hop.mtu = std::max(hop.mtu, static_cast<std::uint16_t>(mtu));
    }
  }
}

void OfflineControl::assume_health(Instant now) {
  for (auto& [key, membership] : state_.memberships)
    if (membership.health.health() == Health::unchecked) membership.health.on_success(now);
  for (const MembershipKey& key : down_) {
    const auto found = state_.memberships.find(key);
    if (found == state_.memberships.end()) continue;
    HealthState& health = found->second.health;
    const Instant since = now - config_.pool(key.pool)->down_grace;
    while (health.health() != Health::down) health.on_failure(since, "assumed to be down");
  }
}

bool OfflineControl::is_due(Instant now) const { return changed_ || (next_ && *next_ <= now); }

std::unique_ptr<const Snapshot> OfflineControl::make_snapshot(Instant now) {
  Reconciled made = reconcile(config_, seed_, state_, memory_, now);
  memory_ = std::move(made.memory);
  next_ = made.next_deadline;
  changed_ = false;
  remember_names(*made.snapshot);
  return std::move(made.snapshot);
}

void OfflineControl::remember_names(const Snapshot& snapshot) {
  for (const ServiceConfig& service : config_.services)
    services_[state_.service_numbers.find(service.name).value()] = service.name;
  for (std::size_t i = 0; i < snapshot.backends.size(); ++i)
    if (snapshot.backends[i].present)
      backends_[static_cast<BackendNumber>(i)] = snapshot.backends[i].address;
}

const std::string& OfflineControl::service_name(ServiceNumber number) const {
  static const std::string kNone;
  const auto found = services_.find(number);
  return found == services_.end() ? kNone : found->second;
}

IpAddress OfflineControl::backend_address(BackendNumber number) const {
  const auto found = backends_.find(number);
  return found == backends_.end() ? IpAddress{} : found->second;
}

}  // namespace holdfast

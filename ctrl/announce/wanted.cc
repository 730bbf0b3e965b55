// SPDX-License-Identifier: Apache-2.0
#include "ctrl/announce/wanted.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

namespace holdfast {
namespace {

/// The predicate holds for a backend that has slots.
template <class Predicate>
bool any_with_slots(const PoolReport& pool, Predicate predicate) {
  return std::any_of(pool.backends.begin(), pool.backends.end(), [&](const BackendReport& backend) {
    return backend.weight > 0 && predicate(backend);
  });
}

/// The pools that serve one VIP.
struct Served {
  std::set<std::string_view> pools{};
  std::set<std::string_view> awaited{};  // those of them whose first checks run
  bool eligible = false;                 // one of them can take new flows
};

/// Of every VIP that has a service. Each service and backend is looked at once, so that a large
/// configuration does not hold the control loop.
std::map<IpAddress, Served> served_vips(const Config& config,
                                        const std::vector<PoolReport>& pools) {
  struct Takes {
    bool eligible = false, awaited = false;
  };
  std::map<std::string_view, Takes> takes;
  for (const auto& pool : pools) {
    takes[pool.name] = {
        any_with_slots(pool, [](const auto& b) { return b.state == BackendState::eligible; }),
        any_with_slots(pool, [](const auto& b) { return b.awaits_check; })};
  }
  std::map<IpAddress, Served> result;
  for (const auto& service : config.services) {
    const auto& [eligible, awaited] = takes[service.pool];
    for (const auto& vip : service.vips) {
      auto& served = result[vip];
      served.pools.insert(service.pool);
      served.eligible = served.eligible || eligible;
      if (awaited) served.awaited.insert(service.pool);
    }
  }
  return result;
}

/// "pools dns, web"
std::string named(const std::set<std::string_view>& pools) {
  return fmt::format("pool{} {}", pools.size() > 1 ? "s" : "", fmt::join(pools, ", "));
}

std::string no_eligible(const Served& served) {
  if (served.pools.empty()) return "no service has this VIP";
  return "no eligible backend in " + named(served.pools);
}

Announcement announcement_of(const VipConfig& vip, const BgpConfig& bgp, AnnouncePhase phase) {
  Announcement announcement{
      .vip = vip.address,
      .next_hop = (vip.address.is_v4() ? bgp.next_hop : bgp.next_hop_v6).value_or(IpAddress{}),
      .communities = vip.communities,
      .med = vip.med,
      .prepend = vip.prepend};
  auto& communities = announcement.communities;
  if (phase == AnnouncePhase::leaving) communities.push_back(kGracefulShutdown);
  std::sort(communities.begin(), communities.end());
  communities.erase(std::unique(communities.begin(), communities.end()), communities.end());
  return announcement;
}

}  // namespace

WantedVips wanted_vips(const Config& config, const std::vector<PoolReport>& pools,
                       const std::string& data_plane_trouble, AnnouncePhase phase,
                       const std::set<IpAddress>& wanted_before) {
  WantedVips wanted;
  auto all_served = served_vips(config, pools);
  for (const auto& vip : config.vips) {
    auto& result = wanted[vip.address];
    if (!config.bgp) {
      result.why_not = "there is no [bgp]";
      continue;
    }
    if (!vip.announce) {
      result.why_not = "announce = false";
      continue;
    }
    result.own = true;
    if (phase == AnnouncePhase::withdrawn) {
      result.why_not = "stopping";
      continue;
    }
    const auto& served = all_served[vip.address];
    if (!data_plane_trouble.empty()) {
      result.why_not = "the data plane is not ready: " + data_plane_trouble;
      result.held = phase == AnnouncePhase::starting;
    } else if (!served.awaited.empty() && !wanted_before.contains(vip.address)) {
      result.why_not = fmt::format("the first checks of {} are running", named(served.awaited));
      result.held = true;
    } else if (!served.eligible) {
      result.why_not = no_eligible(served);
    } else {
      auto announcement = announcement_of(vip, *config.bgp, phase);
      result.why_not = why_invalid(announcement);
      if (result.why_not.empty()) result.announcement = std::move(announcement);
    }
  }
  return wanted;
}

std::string data_plane_trouble(const DataPlaneStats& stats, const WorkerPulse& pulse) {
  if (stats.workers.empty()) return "there is no worker";
  for (const auto& worker : stats.workers) {
    if (worker.snapshot_generation == 0)
      return fmt::format("worker {} has not begun", worker.worker);
  }
  if (const auto stuck = pulse.workers() - pulse.alive(); stuck > 0)
    return fmt::format("{} of {} workers do not move", stuck, pulse.workers());
  const auto& ports = stats.ports;
  if (std::none_of(ports.begin(), ports.end(), [](const PortStats& port) { return port.up; }))
    return "no port is up";
  return {};
}

std::string why_invalid(const Announcement& announcement) {
  const auto& [vip, next_hop, communities, med, prepend] = announcement;
  if (vip.is_unspecified() || vip.is_multicast() || vip.is_loopback())
    return fmt::format("{} can not be announced", vip.text());
  if (next_hop.family() != vip.family()) return "its next hop is of the other family";
  if (next_hop.is_unspecified() || next_hop.is_multicast() || next_hop.is_loopback())
    return fmt::format("{} can not be its next hop", next_hop.text());
  if (next_hop == vip) return "it can not be its own next hop";
  if (std::adjacent_find(communities.begin(), communities.end(), std::greater_equal<>{}) !=
      communities.end())
    return "its communities are not in order";
  if (prepend > 10) return fmt::format("{} prepends are too many", prepend);
  return {};
}

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// Which VIPs this host should announce, how, and why not: a function of the configuration, the
// backends' states, the data plane and whether the daemon stops. Pure; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ctrl/announce/speaker.h"
#include "ctrl/reconcile/reconcile.h"
#include "ctrl/worker_pulse.h"
#include "lib/config/config.h"
#include "lib/model/stats.h"

namespace holdfast {

/// RFC 8326: routers that honour it use such a route only when there is no other.
inline constexpr std::uint32_t kGracefulShutdown = 0xffff'0000;  // 65535:0
/// RFC 1997: no peer is told of such a route.
inline constexpr std::uint32_t kNoAdvertise = 0xffff'ff02;

enum class AnnouncePhase : std::uint8_t {
  starting,   // what an earlier run left in the speaker stays while the data plane gets ready
  serving,    //
  leaving,    // with kGracefulShutdown
  withdrawn,  // nothing is wanted
};

struct WantedVip {
  std::optional<Announcement> announcement{};  // absent: not to be announced
  std::string why_not{};                       // then; one clause
  bool own = false;   // announce = true and [bgp]: its route is ours to add and remove
  bool held = false;  // not wanted yet, but a route that is there already may stay
};

/// Every VIP of the configuration.
using WantedVips = std::map<IpAddress, WantedVip>;

/// A VIP is wanted while the data plane is ready (`data_plane_trouble` is empty) and a pool of any
/// of its services has an eligible backend of weight above 0. The first time it also waits until no
/// first check is awaited in its pools (kFirstChecks bounds that): where another load balancer
/// serves the VIP, flows of the slots that still wait are better off there. `pools`: those of
/// `config`. `wanted_before`: VIPs that were wanted in this run; whatever appears later never takes
/// one of these back.
[[nodiscard]] WantedVips wanted_vips(const Config& config, const std::vector<PoolReport>& pools,
                                     const std::string& data_plane_trouble, AnnouncePhase phase,
                                     const std::set<IpAddress>& wanted_before);

/// Why the data plane can not forward, as one clause; empty: it can. That is: every worker moves
/// and has taken up a snapshot, and at least one port is up.
[[nodiscard]] std::string data_plane_trouble(const DataPlaneStats& stats, const WorkerPulse& pulse);

/// Why a speaker must not be told `announcement`; empty: it may. A speaker checks almost nothing,
/// and a bad route costs the session with the router.
[[nodiscard]] std::string why_invalid(const Announcement& announcement);

}  // namespace holdfast

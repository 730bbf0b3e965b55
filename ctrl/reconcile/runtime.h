// SPDX-License-Identifier: Apache-2.0
// What is: health and drain of every configured backend, how it is reached, and the numbers that
// stand for it. The other half of reconcile's input beside what is wanted (Config). Owned by the
// control thread; may be copied to build tables elsewhere.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ctrl/path_mtu/path_mtus.h"
#include "ctrl/reconcile/next_hops.h"
#include "ctrl/reconcile/numbers.h"
#include "ctrl/state/drain.h"
#include "ctrl/state/health.h"
#include "lib/base/instant.h"
#include "lib/base/result.h"
#include "lib/config/config.h"
#include "lib/model/seam.h"

namespace holdfast {

/// One backend of one pool, for as long as the configuration has it.
struct Membership {
  Instant appeared{};
  HealthState health;
  Drain drain{};
  std::optional<std::uint32_t> weight{};  // set at run time instead of the configuration's
};

struct RuntimeState {
  std::map<MembershipKey, Membership> memberships{};
  std::map<IpAddress, ResolvedRoute> routes{};  // by backend address; absent: not asked yet
  PathMtus path_mtus{};                         // what routers on the way said
  std::vector<PortDescription> ports{};         // by PortNumber
  std::set<std::string> services{};             // those that hold a number
  BackendNumbers backend_numbers{};
  ServiceNumbers service_numbers{};
};

/// Takes over a checked configuration: new memberships and services get numbers, vanished ones are
/// forgotten and their numbers retired, all others keep health, drain and number. Fails, and
/// changes nothing, when there are not enough numbers.
[[nodiscard]] Result<void> follow_config(RuntimeState& state, const Config& config, Instant now);

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// From all that is known about one backend of a pool to the one state of docs/cli.md's table.
// Pure; any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "ctrl/state/deadline.h"
#include "ctrl/state/drain.h"
#include "ctrl/state/health.h"
#include "lib/model/backend.h"

namespace holdfast {

enum class PathState : std::uint8_t {
  never,      // no next hop has ever been known
  usable,     // a next hop, and a tunnel source to go with it
  lost,       // there was one; the last known is kept
  too_small,  // usable, but IPv6 of 1280 bytes does not fit and an IPv6 service uses the pool
};

struct BackendFacts {
  std::uint32_t weight = 0;
  bool weight_set = false;  // at run time; false: it is the configuration's
  std::chrono::milliseconds down_grace{10'000};
  Instant appeared{};  // when this daemon first had it in its configuration
  const HealthState& health;
  const Drain& drain;
  PathState path = PathState::never;
  std::string_view path_problem{};  // why `path` is not usable
};

struct BackendVerdict {
  BackendState state = BackendState::unchecked;
  bool keeps_tcp = false;  // placed flows stay; false: re-picked at their next packet
  bool keeps_udp = false;
  bool awaits_check = false;  // unchecked, and new flows of its base slots wait
  std::string reason{};       // for operators, without a full stop
  Deadline next_deadline{};   // when this verdict changes if nothing else happens
};

/// A backend whose next hop has not been resolved yet gets this long before it counts as
/// neigh_unresolved: the kernel's own three neighbour probes of a second each. Until then it is
/// unchecked, and mid-flow packets wait for it instead of moving to others.
inline constexpr std::chrono::seconds kFirstResolution{3};

/// For so long after it appeared, the first check of a backend is waited for: new flows of its base
/// slots wait, and VIPs that have not been announced since the start do, too. Mostly that is over
/// within the first round trips. But a check's timeout and interval may be minutes, and a site must
/// not stay silent for one backend that is. From then on new flows of an unchecked backend's slots
/// go to the others, as if it were down; running ones stay.
inline constexpr std::chrono::seconds kFirstChecks{10};

/// The state is the first of these that holds: unchecked, neigh_unresolved, down, next_hop_lost,
/// path_too_small, draining, weight_zero, eligible. So `draining` says that nothing worse is known,
/// and a pool that has only draining backends left may use it. Placed flows stay while none of the
/// things that hold ends them.
[[nodiscard]] BackendVerdict judge_backend(const BackendFacts& facts, Instant now);

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
#include "ctrl/state/backend_state.h"

#include <fmt/format.h>

namespace holdfast {

namespace {

std::string with(std::string_view what, std::string_view why) {
  return why.empty() ? std::string(what) : fmt::format("{}: {}", what, why);
}

std::string drain_reason(const Drain& drain, Instant now) {
  if (!drain.deadline()) {
    return now < drain.udp_until()
               ? "drained by an operator, placed flows stay until they end (UDP: 15 minutes)"
               : "drained by an operator, placed TCP flows stay until they end";
  }
  return now < *drain.deadline() ? "drained by an operator, placed flows stay to the deadline"
                                 : "drained by an operator, the deadline has passed";
}

struct Cause {
  BackendState state;
  std::string reason;
};

/// The first thing of the documented order that holds.
Cause cause_of(const BackendFacts& facts, bool resolving, Instant now) {
  if (facts.health.health() == Health::unchecked)
    return {BackendState::unchecked, facts.health.reason()};
  if (resolving)
    return {BackendState::unchecked, with("next hop not resolved yet", facts.path_problem)};
  if (facts.path == PathState::never)
    return {BackendState::neigh_unresolved, with("next hop never resolved", facts.path_problem)};
  if (facts.health.health() == Health::down) return {BackendState::down, facts.health.reason()};
  if (facts.path == PathState::lost)
    return {BackendState::next_hop_lost, with("next hop lost", facts.path_problem)};
  if (facts.path == PathState::too_small)
    return {BackendState::path_too_small, with("path too small for IPv6", facts.path_problem)};
  if (facts.drain.draining()) return {BackendState::draining, drain_reason(facts.drain, now)};
  if (facts.weight == 0)
    return {BackendState::weight_zero,
            facts.weight_set ? "weight 0, set by an operator" : "weight 0 in the configuration"};
  return {BackendState::eligible, facts.health.reason()};
}

}  // namespace

BackendVerdict judge_backend(const BackendFacts& facts, Instant now) {
  // Placed flows stay until the first of these, nullopt: without end.
  Deadline tcp_until;
  Deadline udp_until;
  if (facts.health.health() == Health::down) {
    // A checker may be wrong, and a moved TCP flow is always reset; UDP has nothing to lose.
    tcp_until = facts.health.since() + facts.down_grace;
    udp_until = facts.health.since();
  }
  if (facts.drain.draining()) {
    tcp_until = earlier(tcp_until, facts.drain.tcp_until());
    udp_until = earlier(udp_until, facts.drain.udp_until());
  }

  const Instant settled = facts.appeared + kFirstResolution;
  const bool resolving =
      facts.path == PathState::never && now < settled && facts.health.health() != Health::down;
  const Instant patience = facts.appeared + kFirstChecks;
  Cause cause = cause_of(facts, resolving, now);
  if (facts.drain.draining() && cause.state != BackendState::draining)
    cause.reason += " (also draining)";
  if (facts.weight == 0 && cause.state != BackendState::weight_zero)
    cause.reason += " (also weight 0)";

  const bool awaits_check = cause.state == BackendState::unchecked && now < patience;
  if (cause.state == BackendState::unchecked && !awaits_check)
    cause.reason += " (new flows no longer wait for it)";

  const auto still_ahead = [now](Deadline deadline) {
    return deadline && now < *deadline ? deadline : std::nullopt;
  };
  return {.state = cause.state,
          .keeps_tcp = !tcp_until || now < *tcp_until,
          .keeps_udp = !udp_until || now < *udp_until,
          .awaits_check = awaits_check,
          .reason = std::move(cause.reason),
          .next_deadline = earlier(earlier(still_ahead(tcp_until), still_ahead(udp_until)),
                                   earlier(resolving ? Deadline{settled} : std::nullopt,
                                           awaits_check ? Deadline{patience} : std::nullopt))};
}

}  // namespace holdfast

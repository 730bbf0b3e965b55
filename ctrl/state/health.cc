// SPDX-License-Identifier: Apache-2.0
#include "ctrl/state/health.h"

#include <fmt/format.h>

#include <utility>

namespace holdfast {

namespace {

std::string times(std::uint32_t count) {
  return count == 1 ? std::string{} : fmt::format(" {} times in a row", count);
}

}  // namespace

HealthState HealthState::without_check(Instant now) {
  HealthState state(HealthRules{}, now);
  state.health_ = Health::up;
  state.reason_ = "no check configured";
  return state;
}

std::optional<HealthEvent> HealthState::on_success(Instant now) {
  failures_ = 0;
  ++successes_;
  const bool enough = health_ == Health::unchecked || successes_ >= rules_.rise;
  if (health_ == Health::up) reason_ = "check passed";
  if (health_ == Health::up || !enough) return std::nullopt;
  return change_to(Health::up, now, fmt::format("check passed{}", times(successes_)));
}

std::optional<HealthEvent> HealthState::on_failure(Instant now, std::string_view why) {
  successes_ = 0;
  ++failures_;
  if (health_ != Health::down && failures_ >= rules_.fall)
    return change_to(Health::down, now, fmt::format("check failed{}: {}", times(failures_), why));
  // The cause may change while it stays down: "no answer" becomes "connection refused".
  if (health_ == Health::down) reason_ = fmt::format("check failed: {}", why);
  if (health_ == Health::unchecked)
    reason_ = fmt::format("no check passed yet, check failed: {}", why);
  return std::nullopt;
}

std::optional<HealthEvent> HealthState::on_check_removed(Instant now) {
  successes_ = failures_ = 0;
  std::string reason = "no check configured";
  if (health_ != Health::up) return change_to(Health::up, now, std::move(reason));
  reason_ = std::move(reason);
  return std::nullopt;
}

HealthEvent HealthState::change_to(Health after, Instant now, std::string reason) {
  const Health before = std::exchange(health_, after);
  since_ = now;
  reason_ = std::move(reason);
  return {.before = before, .after = after, .at = now, .reason = reason_};
}

}  // namespace holdfast

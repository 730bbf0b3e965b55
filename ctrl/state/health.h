// SPDX-License-Identifier: Apache-2.0
// What the checks say about one backend of a pool: consecutive results against rise and fall. Pure;
// owned by the control thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lib/base/instant.h"

namespace holdfast {

enum class Health : std::uint8_t { unchecked, up, down };

[[nodiscard]] constexpr std::string_view name_of(Health health) {
  switch (health) {
    case Health::unchecked:
      return "unchecked";
    case Health::up:
      return "up";
    case Health::down:
      return "down";
  }
  return "?";
}

/// How many results in a row change the state; both at least 1.
struct HealthRules {
  std::uint32_t rise = 3;
  std::uint32_t fall = 2;

  friend bool operator==(const HealthRules&, const HealthRules&) = default;
};

/// The state changed. `reason` is for operators and for the event log.
struct HealthEvent {
  Health before = Health::unchecked;
  Health after = Health::unchecked;
  Instant at{};
  std::string reason;
};

/// The first success after the start is enough for up (docs/decisions/first-check-decides.md);
/// from down it takes `rise` in a row. `fall` failures in a row make it down, whatever it was.
class HealthState {
 public:
  explicit HealthState(HealthRules rules, Instant now) : rules_(rules), since_(now) {}
  /// A pool without a check: up at once, for good.
  [[nodiscard]] static HealthState without_check(Instant now);

  /// One finished check; returns an event when the state changed. `why` completes "check failed":
  /// "connection refused", "no answer within 1s".
  std::optional<HealthEvent> on_success(Instant now);
  std::optional<HealthEvent> on_failure(Instant now, std::string_view why);

  /// A new configuration. What is known so far stays, only later results count by the new rules.
  void set_rules(HealthRules rules) { rules_ = rules; }
  /// The pool's check is gone from the configuration: up from now on.
  std::optional<HealthEvent> on_check_removed(Instant now);

  [[nodiscard]] Health health() const { return health_; }
  /// When health() last changed.
  [[nodiscard]] Instant since() const { return since_; }
  /// Why health() is what it is, one clause without a full stop.
  [[nodiscard]] const std::string& reason() const { return reason_; }

 private:
  [[nodiscard]] HealthEvent change_to(Health after, Instant now, std::string reason);

  HealthRules rules_;
  Health health_ = Health::unchecked;
  Instant since_;
  std::uint32_t successes_ = 0;  // in a row
  std::uint32_t failures_ = 0;   // in a row
  std::string reason_ = "not checked yet";
};

}  // namespace holdfast

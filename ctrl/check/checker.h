// SPDX-License-Identifier: Apache-2.0
// Runs the checks: each target at its interval, give or take a tenth so that targets (and load
// balancers) do not fall into step, one at a time, as many targets at once as there are. Owned by
// ControlPlane, control thread only.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "ctrl/check/check.h"
#include "ctrl/loop/loop.h"
#include "ctrl/reconcile/numbers.h"
#include "lib/config/config.h"

namespace holdfast {

/// Every target of a config, with the memberships that live by it. Pure.
using CheckTargets = std::map<CheckTarget, std::vector<MembershipKey>>;
[[nodiscard]] CheckTargets check_targets(const Config& config);

class Checker {
 public:
  /// The first checks of all targets are spread over this, or over the interval if that is less.
  static constexpr std::chrono::milliseconds kFirstWithin{500};

  /// Tells one outcome for each membership of a target.
  using OnOutcome = std::function<void(const MembershipKey& key, const CheckOutcome& outcome)>;

  /// `config` must outlive the checker.
  Checker(Loop& loop, const Config& config, OnOutcome on_outcome);
  ~Checker();
  Checker(const Checker&) = delete;
  Checker& operator=(const Checker&) = delete;

 private:
  struct Entry {
    CheckTarget target;
    const CheckConfig* settings;
    std::vector<MembershipKey> memberships;
    Loop::TimerId timer = 0;  // of the next start
    std::unique_ptr<RunningCheck> running{};
    bool told_not_run = false;  // logged once until it runs again
  };

  void start(Entry& entry);
  void done(Entry& entry, const CheckOutcome& outcome);
  void start_after(Entry& entry, std::chrono::nanoseconds delay);
  /// `interval` give or take a tenth.
  [[nodiscard]] std::chrono::nanoseconds jittered(std::chrono::milliseconds interval);

  Loop& loop_;
  OnOutcome on_outcome_;
  std::minstd_rand random_;
  std::vector<std::unique_ptr<Entry>> entries_;
};

}  // namespace holdfast

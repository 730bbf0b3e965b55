// SPDX-License-Identifier: Apache-2.0
// What changed between two reports: one event for each change of a backend's or pool's state, with
// the reason. The control thread compares with each snapshot that it publishes. Besides, what a
// report has that an operator should mend.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ctrl/events.h"
#include "ctrl/reconcile/reconcile.h"

namespace holdfast {

struct StateChange {
  EventKind kind = EventKind::backend;
  Severity severity = Severity::info;  // warning: less can be served than before
  std::string subject{};               // "web/b1 (192.0.2.1)"
  std::string text{};                  // "eligible -> down: check failed: ..."
};

/// How events name one backend of a pool.
[[nodiscard]] std::string event_subject(const MembershipKey& key, std::string_view name);

/// What changed from `before` (empty: the start) to `after`. Pure.
[[nodiscard]] std::vector<StateChange> state_changes(const std::vector<PoolReport>& before,
                                                     const std::vector<PoolReport>& after);

/// What stays to be mended between here and backends, one sentence each, in the order of the
/// configuration: ways that do not exist, or carry less than clients send. Pure.
[[nodiscard]] std::vector<std::string> standing_warnings(const std::vector<PoolReport>& pools);

}  // namespace holdfast

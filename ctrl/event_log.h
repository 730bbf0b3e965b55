// SPDX-License-Identifier: Apache-2.0
// The event log: one line for each change of a backend's or pool's state, with the reason. Compares
// two reports; the control thread calls it with each snapshot that it publishes.
#pragma once

#include <string>
#include <vector>

#include "ctrl/reconcile/reconcile.h"

namespace holdfast {

struct StateChange {
  bool bad = false;  // less can be served than before: logged as a warning
  std::string text;  // "backend web/b1 (192.0.2.1): eligible -> down: check failed: ..."
};

/// What changed from `before` (empty: the start) to `after`. Pure.
[[nodiscard]] std::vector<StateChange> state_changes(const std::vector<PoolReport>& before,
                                                     const std::vector<PoolReport>& after);

/// Writes state_changes() to the default logger.
void log_changes(const std::vector<PoolReport>& before, const std::vector<PoolReport>& after);

}  // namespace holdfast

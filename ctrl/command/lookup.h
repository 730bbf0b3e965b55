// SPDX-License-Identifier: Apache-2.0
// The command that tells where one flow's packets go, and why: lookup.
#pragma once

#include <string_view>
#include <vector>

#include "ctrl/command/command.h"
#include "ctrl/reconcile/reconcile.h"
#include "lib/model/flow_query.h"

namespace holdfast {

[[nodiscard]] Command lookup_command();

/// The answer of the command. `pools`: the report of the snapshot that `answer` was made by;
/// `service`, `pool`: names, empty when there is no service. Pure.
[[nodiscard]] Json explain(const FlowQuestion& question, const FlowAnswer& answer,
                           std::string_view service, std::string_view pool,
                           const std::vector<PoolReport>& pools);

}  // namespace holdfast

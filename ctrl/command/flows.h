// SPDX-License-Identifier: Apache-2.0
// The family of commands about all flows: flows list, flows count. They look at every entry of the
// flow tables (ctrl/command/flow_walk.h).
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "ctrl/command/command.h"
#include "ctrl/command/flow_words.h"

namespace holdfast {

[[nodiscard]] Command flows_list_command();
[[nodiscard]] Command flows_count_command();

/// The answer of flows list; an empty `cursor`: there is no next page. Pure.
[[nodiscard]] Json page_json(const std::vector<FlowRow>& rows, const std::string& cursor,
                             const FlowNames& names);

/// The answer of flows count. `silent`: --idle. Pure.
[[nodiscard]] Json census_json(const FlowCensus& census,
                               std::optional<std::chrono::milliseconds> silent,
                               const FlowNames& names);

}  // namespace holdfast

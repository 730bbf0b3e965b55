// SPDX-License-Identifier: Apache-2.0
// Where the next page of a list of flows begins, as a text that clients give back as it is. It goes
// with the list it came from; a text that was made up or belongs to another list is found out (but
// for one in four billion: it is no secret, it only guards against mistakes). Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lib/model/flow_scan.h"

namespace holdfast {

/// `list`: what makes this list another one than others, such as its filters.
[[nodiscard]] std::string write_flow_cursor(FlowPosition position, std::string_view list);
/// nullopt: it is none of this list.
[[nodiscard]] std::optional<FlowPosition> read_flow_cursor(std::string_view text,
                                                           std::string_view list);

}  // namespace holdfast

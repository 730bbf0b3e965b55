// SPDX-License-Identifier: Apache-2.0
// Walks through the workers' flow tables from another thread, for `holdfast flows`. Slow next to
// the packet path (it fetches every cache line of the tables), so it goes in slices.
#pragma once

#include <optional>
#include <span>

#include "lb/flow/flow_table.h"
#include "lib/model/flow_scan.h"

namespace holdfast {

/// FlowScan::read_flows() over `tables` by worker, with `now` on the flow clock that stamped them.
/// Any thread; the workers may run meanwhile. A time that is ahead of `now` counts as now.
[[nodiscard]] std::optional<FlowPosition> scan_flows(std::span<const FlowTable* const> tables,
                                                     FlowTime now, FlowPosition from,
                                                     std::uint64_t places,
                                                     const FlowVisitor& visit);

}  // namespace holdfast

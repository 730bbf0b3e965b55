// SPDX-License-Identifier: Apache-2.0
// The answer to `holdfast lookup`: what the pipeline would do with packets of one flow. It goes the
// packet's way with the packet's code (parse, service table, hash, peek, Placement) and changes
// nothing: no entry, no counter. Not on the packet path: it may allocate.
#pragma once

#include <span>

#include "lb/flow/flow_table.h"
#include "lib/model/flow_query.h"
#include "lib/model/snapshot.h"

namespace holdfast {

/// `tables` by worker; the workers may run meanwhile. Any thread that may read `snapshot`.
[[nodiscard]] FlowAnswer look_up_flow(const FlowQuestion& question, const Snapshot& snapshot,
                                      std::span<const FlowTable* const> tables);

}  // namespace holdfast

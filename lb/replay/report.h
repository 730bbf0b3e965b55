// SPDX-License-Identifier: Apache-2.0
// What a replay tells: as JSON for programs, as text for people (docs/replay.md has both). Pure.
#pragma once

#include <string>

#include "ctrl/reconcile/offline_control.h"
#include "lb/replay/ledger.h"
#include "lib/model/stats.h"

namespace holdfast {

/// One object, in one line.
[[nodiscard]] std::string replay_json(const Ledger& ledger, const PacketCounters& counters,
                                      const OfflineControl& names);

/// A line for each packet, and the sums. `output`: the path of OUT.pcap.
[[nodiscard]] std::string replay_text(const Ledger& ledger, const PacketCounters& counters,
                                      const OfflineControl& names, const std::string& output);

}  // namespace holdfast

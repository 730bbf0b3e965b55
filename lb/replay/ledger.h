// SPDX-License-Identifier: Apache-2.0
// What became of each packet of a capture. Filled by the replay while it runs, read for the report.
// One owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/model/numbers.h"
#include "lib/model/verdict.h"

namespace holdfast {

struct LedgerEntry {
  Verdict verdict{};
  ServiceNumber service = kNoService;
  BackendNumber backend = kNoBackend;
  /// Of what was sent for it, as numbers of frames in OUT.pcap.
  std::vector<std::uint64_t> outputs{};
};

/// By number of the packet in the capture.
using Ledger = std::vector<LedgerEntry>;

}  // namespace holdfast

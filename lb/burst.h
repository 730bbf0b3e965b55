// SPDX-License-Identifier: Apache-2.0
// Up to 32 packets on their way through the stages, as parallel arrays. Each stage reads what
// earlier ones wrote and fills one array, or sets a verdict. Owned by one worker.
#pragma once

#include <rte_mbuf.h>

#include <array>
#include <cstdint>

#include "lb/flow/flow_buckets.h"
#include "lib/flow/flow_key.h"
#include "lib/model/numbers.h"
#include "lib/model/verdict.h"
#include "lib/net/parse.h"

namespace holdfast {

struct Burst {
  static constexpr unsigned kCapacity = 32;
  using Lane = unsigned;

  unsigned size = 0;
  std::array<rte_mbuf*, kCapacity> mbuf{};
  std::array<Verdict, kCapacity> verdict{};
  std::array<ParsedPacket, kCapacity> packet{};    // parse
  std::array<ServiceNumber, kCapacity> service{};  // classify
  std::array<FlowHash, kCapacity> hash{};          // classify
  std::array<FlowBuckets, kCapacity> buckets{};    // classify
  std::array<BackendNumber, kCapacity> backend{};  // pick_backend
  std::array<PortNumber, kCapacity> egress{};      // encapsulate

  /// Calls visit(lane) for each packet whose fate is still open, in order of arrival.
  template <class Visitor>
  void for_undecided(Visitor&& visit) {
    for (Lane lane = 0; lane < size; ++lane)
      if (!verdict[lane].decided()) visit(lane);
  }
  void drop(Lane lane, DropReason reason) { verdict[lane] = Verdict::dropped(reason); }
};

}  // namespace holdfast

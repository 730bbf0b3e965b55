// SPDX-License-Identifier: Apache-2.0
// Up to 32 packets on their way through the stages, as parallel arrays. Each stage reads what
// earlier ones wrote and fills one array, or sets a verdict. Owned by one worker.
#pragma once

#include <rte_mbuf.h>

#include <array>
#include <cstdint>

#include "lb/flow/flow_buckets.h"
#include "lib/flow/flow_key.h"
#include "lib/model/answer.h"
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
  bool has_fragments = false;                      // parse
  std::array<ServiceNumber, kCapacity> service{};  // classify
  std::array<FlowHash, kCapacity> hash{};          // classify
  std::array<FlowBuckets, kCapacity> buckets{};    // classify
  std::array<BackendNumber, kCapacity> backend{};  // pick_backend
  std::array<PortNumber, kCapacity> egress{};      // encapsulate, answer
  std::array<Answer, kCapacity> answer{};          // of those whose outcome is answer
  unsigned answer_count = 0;

  /// One more packet to send for a lane: an inner fragment behind the first, which stays in the
  /// lane's own buffer. Leaves by the lane's egress, right behind it.
  struct Extra {
    rte_mbuf* mbuf;
    Lane lane;
  };
  static constexpr unsigned kMaxExtra = 96;
  std::array<Extra, kMaxExtra> extra{};  // encapsulate; each lane's lie together, lanes ascending
  unsigned extra_size = 0;

  /// Calls visit(lane) for each packet whose fate is still open, in order of arrival.
  template <class Visitor>
  void for_undecided(Visitor&& visit) {
    for (Lane lane = 0; lane < size; ++lane)
      if (!verdict[lane].decided()) visit(lane);
  }
  void drop(Lane lane, DropReason reason) { verdict[lane] = Verdict::dropped(reason); }
  void answer_with(Lane lane, Answer what) {
    answer[lane] = what;
    verdict[lane] = Verdict::answered();
    ++answer_count;
  }
};

}  // namespace holdfast

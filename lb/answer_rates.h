// SPDX-License-Identifier: Apache-2.0
// How often a worker answers for VIPs (icmp_answer_rate): a bucket a kind, so that a flood of pings
// takes nothing from path MTU discovery. Owned by the worker.
#pragma once

#include <cstdint>

#include "lib/base/token_bucket.h"
#include "lib/model/answer.h"

namespace holdfast {

class AnswerRates {
 public:
  /// `rate`: answers of each kind a second; 0: none.
  explicit AnswerRates(std::uint32_t rate) : too_big_(rate), echo_(rate), reject_(rate) {}

  /// Takes a token; false: such answers are used up for now.
  [[nodiscard]] bool take(AnswerKind kind, Instant now) {
    switch (kind) {
      case AnswerKind::too_big:
        return too_big_.take(now);
      case AnswerKind::echo_reply:
        return echo_.take(now);
      case AnswerKind::reset:
      case AnswerKind::port_unreachable:
        return reject_.take(now);
    }
    return false;
  }

 private:
  TokenBucket too_big_;
  TokenBucket echo_;
  TokenBucket reject_;
};

}  // namespace holdfast

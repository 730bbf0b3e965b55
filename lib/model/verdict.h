// SPDX-License-Identifier: Apache-2.0
// What becomes of a packet. Every received packet leaves the pipeline with exactly one outcome.
#pragma once

#include <cstdint>

#include "lib/model/drop_reason.h"

namespace holdfast {

enum class Outcome : std::uint8_t {
  undecided,
  forward,
  answer,  // turned into an answer to its sender (lib/model/answer.h)
  to_kernel,
  hold,  // a fragment that waits for its first one; it comes back, and is then something else
  drop,
};

struct Verdict {
  Outcome outcome = Outcome::undecided;
  DropReason reason{};  // means something only when outcome == drop

  [[nodiscard]] constexpr bool decided() const { return outcome != Outcome::undecided; }
  [[nodiscard]] static constexpr Verdict dropped(DropReason why) { return {Outcome::drop, why}; }
  [[nodiscard]] static constexpr Verdict forwarded() { return {Outcome::forward, {}}; }
  [[nodiscard]] static constexpr Verdict answered() { return {Outcome::answer, {}}; }
  [[nodiscard]] static constexpr Verdict held() { return {Outcome::hold, {}}; }
  [[nodiscard]] static constexpr Verdict kernel() { return {Outcome::to_kernel, {}}; }

  friend constexpr bool operator==(const Verdict&, const Verdict&) = default;
};

}  // namespace holdfast

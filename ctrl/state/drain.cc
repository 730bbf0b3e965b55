// SPDX-License-Identifier: Apache-2.0
#include "ctrl/state/drain.h"

namespace holdfast {

void Drain::start(Instant now, std::optional<std::chrono::milliseconds> timeout) {
  if (!draining_) since_ = now;
  draining_ = true;
  deadline_ = timeout ? Deadline{now + *timeout} : std::nullopt;
}

Instant Drain::udp_until() const { return deadline_.value_or(since_ + kUdpLimit); }

}  // namespace holdfast

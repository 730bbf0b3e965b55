// SPDX-License-Identifier: Apache-2.0
// When something must be looked at again, even if nothing happens; nullopt is never.
#pragma once

#include <algorithm>
#include <optional>

#include "lib/base/instant.h"

namespace holdfast {

using Deadline = std::optional<Instant>;

[[nodiscard]] inline Deadline earlier(Deadline a, Deadline b) {
  if (!a) return b;
  if (!b) return a;
  return std::min(*a, *b);
}

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// A packet that was dropped, as far as an operator needs it to see what it was. A plain value: the
// workers keep the latest of each reason (lb/drop_samples.h), `holdfast drops` shows it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "lib/base/instant.h"
#include "lib/model/drop_reason.h"

namespace holdfast {

struct DropSample {
  /// Enough for the headers of nearly any packet.
  static constexpr std::size_t kBytes = 64;

  DropReason reason{};
  unsigned worker = 0;
  Instant at{0};
  std::uint32_t length = 0;                 // of the whole frame, bytes
  std::array<std::uint8_t, kBytes> head{};  // its first bytes; `kept()` of them are the frame's

  [[nodiscard]] std::size_t kept() const { return length < kBytes ? length : kBytes; }
};

}  // namespace holdfast

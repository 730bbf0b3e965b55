// SPDX-License-Identifier: Apache-2.0
// The latest dropped packet of each reason, as far as `holdfast drops` shows it. The worker writes,
// at most one of a reason in kInterval, so that a flood of drops pays one comparison a packet;
// control reads at any time, without a lock and without holding the worker up.
#pragma once

#include <rte_mbuf.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "lib/model/drop_sample.h"

namespace holdfast {

class DropSamples {
 public:
  static constexpr Instant kInterval = std::chrono::milliseconds(10);

  /// Worker only. `frame` as it is at its end: what is dropped behind encapsulate() is in its
  /// tunnel.
  void take(DropReason reason, const rte_mbuf& frame, Instant now) noexcept {
    Slot& slot = slots_[static_cast<std::size_t>(reason)];
    if (now >= slot.next) [[unlikely]]
      write(slot, frame, now);
  }

  /// Any thread. Nothing: no packet was dropped for this reason, or the worker overwrote the sample
  /// as often as it was read. Of the sample all but `worker` is filled in.
  [[nodiscard]] std::optional<DropSample> read(DropReason reason) const noexcept;

 private:
  static constexpr std::size_t kWords = DropSample::kBytes / sizeof(std::uint64_t);

  /// A sequence lock. The version is odd while the worker writes; a reader whose fields came from
  /// between two different versions has read a mixture and tries again. All stores of fields are
  /// releases and all loads of them acquires: who sees any field of a write then sees the odd
  /// version before it. (Fences would say the same, but ThreadSanitizer does not know them.)
  struct alignas(64) Slot {
    std::atomic<std::uint64_t> version{0};
    std::atomic<std::int64_t> at{0};
    std::atomic<std::uint32_t> length{0};
    Instant next{Instant::min()};  // worker only: before it nothing is taken
    std::array<std::atomic<std::uint64_t>, kWords> head{};
  };

  static void write(Slot& slot, const rte_mbuf& frame, Instant now) noexcept;

  std::array<Slot, kDropReasonCount> slots_{};
};

}  // namespace holdfast

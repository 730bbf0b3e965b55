// SPDX-License-Identifier: Apache-2.0
// What one worker counts about packets (lib/model/stats.h says what each means, and the identity
// that they obey), and the latest ones that it dropped. The worker writes; control reads at any
// time.
#pragma once

#include <array>

#include "lb/drop_samples.h"
#include "lib/base/counter.h"
#include "lib/model/stats.h"

namespace holdfast {

struct alignas(64) WorkerCounters {
  Counter received;
  Counter forwarded;
  Counter answered;
  Counter to_kernel;
  std::array<Counter, kDropReasonCount> dropped;
  Counter held_now;
  Counter transmitted;
  Counter extra_fragments;
  Counter injected;
  Counter from_kernel;
  Counter received_bytes;
  Counter forwarded_bytes;
  DropSamples drop_samples;

  /// Worker only.
  void drop(DropReason reason) noexcept { dropped[static_cast<std::size_t>(reason)].add(); }
  /// Any thread. While traffic flows the fields may be a few packets apart.
  [[nodiscard]] PacketCounters read() const noexcept;
};

}  // namespace holdfast

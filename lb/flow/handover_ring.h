// SPDX-License-Identifier: Apache-2.0
// Messages from one worker to one other: "I have copied this flow, drop yours". Single producer,
// single consumer, fixed size; a full ring refuses, and then the flow is not taken over.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "lib/flow/flow_key.h"
#include "lib/model/numbers.h"

namespace holdfast {

struct Handover {
  FlowHash hash{};
  BackendNumber backend = kNoBackend;  // where the copy says that the flow is
};

class HandoverRing {
 public:
  static constexpr std::uint32_t kSize = 256;  // a power of two

  /// Producer only. True stays true until the next push.
  [[nodiscard]] bool has_room() const {
    return tail_.load(std::memory_order_relaxed) - head_.load(std::memory_order_acquire) < kSize;
  }
  /// Producer only. False: the ring is full.
  [[nodiscard]] bool push(const Handover& message) {
    if (!has_room()) return false;
    const std::uint32_t tail = tail_.load(std::memory_order_relaxed);
    slots_[tail % kSize] = message;
    tail_.store(tail + 1, std::memory_order_release);
    return true;
  }
  /// Consumer only.
  [[nodiscard]] std::optional<Handover> pop() {
    const std::uint32_t head = head_.load(std::memory_order_relaxed);
    if (head == tail_.load(std::memory_order_acquire)) return std::nullopt;
    const Handover message = slots_[head % kSize];
    head_.store(head + 1, std::memory_order_release);
    return message;
  }

 private:
  alignas(64) std::atomic<std::uint32_t> tail_{0};  // producer writes
  alignas(64) std::atomic<std::uint32_t> head_{0};  // consumer writes
  alignas(64) std::array<Handover, kSize> slots_{};
};

}  // namespace holdfast

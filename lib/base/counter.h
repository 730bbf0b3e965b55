// SPDX-License-Identifier: Apache-2.0
// A 64-bit counter with one writer and any number of readers. The writer's increment is a plain
// load, add and store (no locked instruction); a reader sees some recent value, never a torn one.
#pragma once

#include <atomic>
#include <cstdint>

namespace holdfast {

class Counter {
 public:
  /// Owner thread only.
  void add(std::uint64_t amount = 1) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
  /// Owner thread only: for gauges.
  void set(std::uint64_t value) noexcept { value_.store(value, std::memory_order_relaxed); }
  /// Any thread.
  [[nodiscard]] std::uint64_t read() const noexcept {
    return value_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t> value_{0};
};

}  // namespace holdfast

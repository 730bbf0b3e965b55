// SPDX-License-Identifier: Apache-2.0
#include "lb/drop_samples.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace holdfast {

namespace {

using Head = std::array<std::uint8_t, DropSample::kBytes>;

/// The first bytes of a frame, wherever its buffers end.
Head head_of(const rte_mbuf& frame) noexcept {
  Head head{};
  std::size_t done = 0;
  for (const rte_mbuf* at = &frame; at != nullptr && done < head.size(); at = at->next) {
    const std::size_t part = std::min<std::size_t>(at->data_len, head.size() - done);
    if (part != 0)  // memcpy must not be given the null of an empty buffer
      std::memcpy(head.data() + done, rte_pktmbuf_mtod(at, const void*), part);
    done += part;
  }
  return head;
}

}  // namespace

void DropSamples::write(Slot& slot, const rte_mbuf& frame, Instant now) noexcept {
  slot.next = now + kInterval;
  const auto words = std::bit_cast<std::array<std::uint64_t, kWords>>(head_of(frame));
  const std::uint64_t version = slot.version.load(std::memory_order_relaxed);
  slot.version.store(version + 1, std::memory_order_relaxed);
  slot.at.store(now.count(), std::memory_order_release);
  slot.length.store(frame.pkt_len, std::memory_order_release);
  for (std::size_t i = 0; i < kWords; ++i) slot.head[i].store(words[i], std::memory_order_release);
  slot.version.store(version + 2, std::memory_order_release);
}

std::optional<DropSample> DropSamples::read(DropReason reason) const noexcept {
  // Writes are kInterval apart: a second try nearly always finds the worker elsewhere.
  constexpr int kTries = 100;
  const Slot& slot = slots_[static_cast<std::size_t>(reason)];
  for (int tries = 0; tries < kTries; ++tries) {
    const std::uint64_t before = slot.version.load(std::memory_order_acquire);
    if (before == 0) return std::nullopt;
    if (before % 2 != 0) continue;
    DropSample sample{.reason = reason};
    sample.at = Instant(slot.at.load(std::memory_order_acquire));
    sample.length = slot.length.load(std::memory_order_acquire);
    std::array<std::uint64_t, kWords> words;
    for (std::size_t i = 0; i < kWords; ++i)
      words[i] = slot.head[i].load(std::memory_order_acquire);
    if (slot.version.load(std::memory_order_relaxed) != before) continue;
    sample.head = std::bit_cast<Head>(words);
    return sample;
  }
  return std::nullopt;
}

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// What a fragment table knows of one datagram, where other workers can read it while the owner
// writes: a sequence number that is odd while something changes, and words that are atomic each. So
// a reader gets all of it as it was at one moment, or nothing, and never waits.
//
// Why that is enough, by the C++ memory model: whoever reads a word of a later change synchronises
// with its release store, and so sees the odd number that was stored before it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>

#include "lb/fragment/datagram.h"
#include "lib/base/instant.h"
#include "lib/flow/flow_key.h"

namespace holdfast {

/// A copy of a record.
struct DatagramView {
  static constexpr unsigned kMaxPieces = 16;

  FlowHash hash{};
  Instant since{0};  // when it got into its state
  DatagramState state = DatagramState::free;
  Family family = Family::ipv4;
  DropReason reason{};  // when refused
  DatagramFlow flow{};  // when known
  unsigned piece_count = 0;
  std::array<FragmentPiece, kMaxPieces> piece{};  // that came to this worker

  [[nodiscard]] std::span<const FragmentPiece> pieces() const {
    return {piece.data(), piece_count};
  }
};

class alignas(64) DatagramRecord {
 public:
  // --- Owner only ---------------------------------------------------------------------------

  void write(const DatagramView& view) {
    const std::uint64_t sequence = sequence_.load(std::memory_order_relaxed);
    sequence_.store(sequence + 1, std::memory_order_relaxed);
    low_.store(view.hash.low64, std::memory_order_release);
    high_.store(view.hash.high64, std::memory_order_release);
    since_.store(view.since.count(), std::memory_order_release);
    said_.store(pack_said(view), std::memory_order_release);
    for (unsigned i = 0; i < view.piece_count; ++i)
      piece_[i].store(pack(view.piece[i]), std::memory_order_release);
    sequence_.store(sequence + 2, std::memory_order_release);
  }
  [[nodiscard]] DatagramView read_own() const { return copy(); }
  [[nodiscard]] DatagramState state() const {
    return static_cast<DatagramState>(said_.load(std::memory_order_relaxed) & 0xff);
  }
  [[nodiscard]] Instant since() const { return Instant{since_.load(std::memory_order_relaxed)}; }
  [[nodiscard]] bool is(const FlowHash& hash) const {
    return low_.load(std::memory_order_relaxed) == hash.low64 &&
           high_.load(std::memory_order_relaxed) == hash.high64;
  }

  // --- Any thread ---------------------------------------------------------------------------

  /// Nothing while the owner writes, and for another datagram.
  [[nodiscard]] std::optional<DatagramView> read(const FlowHash& hash) const {
    if (!is(hash)) return std::nullopt;
    const std::uint64_t before = sequence_.load(std::memory_order_acquire);
    const DatagramView view = copy();
    const bool still = sequence_.load(std::memory_order_relaxed) == before && before % 2 == 0;
    if (!still || view.hash != hash) return std::nullopt;
    return view;
  }

  /// The chain of datagrams that share a place in the index.
  std::atomic<std::uint16_t> next{0};  // owner writes, other workers read

 private:
  // A piece's start is a multiple of 8: bit 0 of it has room for `last`.
  static std::uint32_t pack(const FragmentPiece& piece) {
    return std::uint32_t{piece.end} << 16 | piece.start | (piece.last ? 1 : 0);
  }
  static FragmentPiece unpack(std::uint32_t word) {
    return {.start = static_cast<std::uint16_t>(word & 0xfff8),
            .end = static_cast<std::uint16_t>(word >> 16),
            .last = (word & 1) != 0};
  }
  static std::uint64_t pack_said(const DatagramView& view) {
    const auto reason = static_cast<std::uint64_t>(view.reason);
    const auto protocol = static_cast<std::uint64_t>(view.flow.protocol);
    const std::uint64_t six = view.family == Family::ipv6 ? 1 : 0;
    return static_cast<std::uint64_t>(view.state) | reason << 8 | protocol << 16 |
           std::uint64_t{view.piece_count} << 24 | six << 31 |
           std::uint64_t{view.flow.client_port.host()} << 32 |
           std::uint64_t{view.flow.service_port.host()} << 48;
  }
  [[nodiscard]] DatagramView copy() const {
    DatagramView view;
    view.hash = {low_.load(std::memory_order_acquire), high_.load(std::memory_order_acquire)};
    view.since = Instant{since_.load(std::memory_order_acquire)};
    const std::uint64_t said = said_.load(std::memory_order_acquire);
    view.state = static_cast<DatagramState>(said & 0xff);
    view.reason = static_cast<DropReason>(said >> 8 & 0xff);
    view.flow = {.protocol = static_cast<IpProtocol>(said >> 16 & 0xff),
                 .client_port = Be16::from_host(static_cast<std::uint16_t>(said >> 32)),
                 .service_port = Be16::from_host(static_cast<std::uint16_t>(said >> 48))};
    view.family = (said >> 31 & 1) != 0 ? Family::ipv6 : Family::ipv4;
    view.piece_count = static_cast<unsigned>(said >> 24 & 0x1f);
    for (unsigned i = 0; i < view.piece_count; ++i)
      view.piece[i] = unpack(piece_[i].load(std::memory_order_acquire));
    return view;
  }

  // Owner writes, other workers read.
  std::atomic<std::uint64_t> sequence_{0};
  std::atomic<std::uint64_t> low_{0};
  std::atomic<std::uint64_t> high_{0};
  std::atomic<Instant::rep> since_{0};
  std::atomic<std::uint64_t> said_{0};
  std::array<std::atomic<std::uint32_t>, DatagramView::kMaxPieces> piece_{};
};

}  // namespace holdfast

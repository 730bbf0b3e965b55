// SPDX-License-Identifier: Apache-2.0
// Workers without threads, EAL and devices, fed packet by packet: the same Worker, stages and flow
// tables as the daemon's. Single thread; snapshots and time are its caller's.
//
// Packets go to the workers in turn. No NIC spreads them so badly: each flow's packets, and each
// datagram's fragments, meet another worker every time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "lb/flow/flow_context.h"
#include "lb/replay/ledger.h"
#include "lib/base/instant.h"
#include "lib/config/config.h"
#include "lib/model/snapshot.h"
#include "lib/model/stats.h"

namespace holdfast {

class Replay {
 public:
  /// Takes a frame that leaves; returns its number among all that did.
  using Send = std::function<std::uint64_t(std::span<const std::uint8_t> frame)>;

  /// Rates and the size of the flow tables are those of `config`; but look-ups in the other
  /// workers' tables cost nothing, so that what a replay shows depends on no budget, and all tables
  /// together have at most kMostEntries. Throws std::runtime_error with one sentence when there is
  /// not enough memory.
  Replay(const DataplaneConfig& config, unsigned workers, Instant start, Send send);
  ~Replay();
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  /// The next packet, all the way, unless it has to wait for another one.
  void handle(std::span<const std::uint8_t> frame, const Snapshot& now, Instant time);
  /// No packet, but time passes up to `time`: what has waited too long is dropped.
  void pass(const Snapshot& now, Instant time);

  /// Packets that wait for others.
  [[nodiscard]] std::uint64_t held() const;
  [[nodiscard]] const Ledger& ledger() const { return ledger_; }
  [[nodiscard]] PacketCounters counters() const;

  static constexpr std::uint64_t kMostEntries = std::uint64_t{1} << 22;  // 64 MiB

 private:
  class Lane;  // one worker and what it works with

  void poll(Lane& lane, const Snapshot& now, Instant time);
  void poll_all(const Snapshot& now, Instant time);

  Send send_;
  Ledger ledger_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  Instant all_polled_;
};

}  // namespace holdfast

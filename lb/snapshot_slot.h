// SPDX-License-Identifier: Apache-2.0
// Where the current snapshot hangs: one writer (the control thread) swaps it, any number of workers
// read it, and an old one is freed after an RCU grace period (rte_rcu_qsbr), when every worker has
// either come to the end of a burst or was asleep since the swap. The slot must outlive its
// readers' last call. Needs no EAL.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>

#include "lib/model/seam.h"

struct rte_rcu_qsbr;

namespace holdfast {

class SnapshotSlot : public SnapshotSink {
 public:
  class Reader;

  /// For at most `readers` workers. Throws std::bad_alloc.
  explicit SnapshotSlot(unsigned readers);
  SnapshotSlot(const SnapshotSlot&) = delete;
  SnapshotSlot& operator=(const SnapshotSlot&) = delete;
  /// Requires: all readers are offline for good.
  ~SnapshotSlot() override;

  /// Control thread. Requires: next is not null.
  void publish(std::unique_ptr<const Snapshot> next) override;
  /// Control thread. Never waits: what some worker may still read stays for a later call.
  void reclaim() override;
  /// Control thread: what was published last; null before the first. Valid until the next
  /// publish().
  [[nodiscard]] const Snapshot* current() const { return current_.load(std::memory_order_relaxed); }
  /// Control thread: old snapshots that wait for their grace period. More than a few for longer
  /// than a second means that a worker hangs.
  [[nodiscard]] std::size_t waiting() const { return old_.size(); }

  /// One per worker; `index` is in [0, readers) and used by one thread at a time. Starts offline.
  [[nodiscard]] Reader reader(unsigned index);

 private:
  struct Old {
    std::uint64_t token;  // freed when every reader has passed this point of the RCU variable
    std::unique_ptr<const Snapshot> snapshot;
  };
  struct FreeAligned {
    void operator()(rte_rcu_qsbr* variable) const;
  };

  std::unique_ptr<rte_rcu_qsbr, FreeAligned> rcu_;
  std::atomic<const Snapshot*> current_{nullptr};  // control writes, workers read
  std::deque<Old> old_;                            // control only; tokens ascend
};

/// A worker's handle. online() ... read() ... quiescent() ... offline(); what read() returned is
/// valid until the next quiescent() or offline().
class SnapshotSlot::Reader {
 public:
  /// Before the first read() after a sleep.
  void online();
  /// Before anything that may block. An offline reader holds nothing back.
  void offline();
  /// Between bursts: nothing of an earlier read() is used any more.
  void quiescent();
  /// Requires: online, and a snapshot has been published.
  [[nodiscard]] const Snapshot& read() const { return *current_->load(std::memory_order_acquire); }

 private:
  friend SnapshotSlot;
  Reader(rte_rcu_qsbr* rcu, const std::atomic<const Snapshot*>* current, unsigned index)
      : rcu_(rcu), current_(current), index_(index) {}

  rte_rcu_qsbr* rcu_;
  const std::atomic<const Snapshot*>* current_;
  unsigned index_;
};

}  // namespace holdfast

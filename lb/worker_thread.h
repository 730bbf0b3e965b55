// SPDX-License-Identifier: Apache-2.0
// The thread round a Worker: it runs on an EAL lcore that is pinned to one CPU, brings the worker
// the snapshot and the time, reports the end of each burst to RCU, and sleeps when nothing comes.
// Owned by DataPlane: the control thread makes, starts and stops it.
#pragma once

#include <atomic>
#include <cstdint>

#include "lb/flow/flow_context.h"
#include "lb/idle_wait.h"
#include "lb/port/worker_io.h"
#include "lb/snapshot_slot.h"
#include "lb/worker.h"
#include "lb/worker_counters.h"
#include "lib/base/counter.h"
#include "lib/model/stats.h"

namespace holdfast {

class WorkerThread {
 public:
  struct Options {
    unsigned index = 0;  // from 0; it runs on lcore index + 1
    int cpu = -1;        // of that lcore, for reports
    bool busy_poll = false;
    std::uint32_t icmp_relay_rate = 1000;
    std::uint32_t icmp_answer_rate = 1000;
    FlowOptions flows{};
  };

  /// Maps the flow table: throws std::runtime_error with one sentence when there is no memory.
  WorkerThread(const Options& options, WorkerIo io, SnapshotSlot::Reader snapshots);
  WorkerThread(const WorkerThread&) = delete;
  WorkerThread& operator=(const WorkerThread&) = delete;
  /// Stops.
  ~WorkerThread();

  [[nodiscard]] FlowContext& flows() { return flows_; }
  [[nodiscard]] const FlowContext& flows() const { return flows_; }

  /// Requires: a snapshot has been published, and the flow contexts are connected.
  void start();
  /// Returns when the thread has finished its last burst. May be called again.
  void stop();

  /// Any thread.
  [[nodiscard]] WorkerStats read_stats() const;
  /// To be read by any thread.
  [[nodiscard]] const DropSamples& drop_samples() const { return counters_.drop_samples; }

 private:
  static int enter(void* self);
  void run();
  void go_idle(Instant now);

  // The worker thread's own while it runs.
  Options options_;
  WorkerIo io_;
  SnapshotSlot::Reader snapshots_;
  IdleWait idle_;
  FlowContext flows_;
  WorkerCounters counters_;
  Worker worker_;

  Counter polls_;                  // worker writes, any thread reads
  Counter sleeps_;                 // the same
  Counter heartbeat_;              // the same
  Counter generation_;             // the same: of the snapshot of the last poll
  std::atomic<bool> stop_{false};  // control writes, the worker reads
  bool started_ = false;           // control only
};

}  // namespace holdfast

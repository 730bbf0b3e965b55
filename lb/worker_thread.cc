// SPDX-License-Identifier: Apache-2.0
#include "lb/worker_thread.h"

#include <fmt/format.h>
#include <rte_launch.h>

#include <stdexcept>
#include <utility>

#include "lb/tsc_clock.h"

namespace holdfast {
namespace {

// Looking this often at empty queues takes some ten microseconds; then a sleep is cheaper than
// going on, and packets that follow each other closely never meet it.
constexpr unsigned kEmptyPollsBeforeSleep = 256;

// Flow entries to look at before a sleep, beyond those of the poll itself: sleeping workers poll
// seldom, and the sweep is to keep its pace all the same.
constexpr std::uint64_t kSweepBeforeSleep = 65536;

}  // namespace

WorkerThread::WorkerThread(const Options& options, WorkerIo io, SnapshotSlot::Reader snapshots)
    : options_(options),
      io_(std::move(io)),
      snapshots_(snapshots),
      idle_(io_.descriptors(), io_.can_sleep_on_descriptors()),
      flows_(options.flows),
      worker_({.io = io_,
               .flows = flows_,
               .counters = counters_,
               .icmp_relay_rate = options.icmp_relay_rate,
               .icmp_answer_rate = options.icmp_answer_rate}) {}

WorkerThread::~WorkerThread() { stop(); }

void WorkerThread::start() {
  stop_.store(false, std::memory_order_relaxed);
  if (rte_eal_remote_launch(&WorkerThread::enter, this, options_.index + 1) != 0)
    throw std::runtime_error(fmt::format("cannot start worker {}", options_.index));
  started_ = true;
}

void WorkerThread::stop() {
  if (!started_) return;
  stop_.store(true, std::memory_order_relaxed);
  idle_.wake();
  rte_eal_wait_lcore(options_.index + 1);
  started_ = false;
}

int WorkerThread::enter(void* self) {
  static_cast<WorkerThread*>(self)->run();
  return 0;
}

void WorkerThread::run() {
  TscClock clock(rte_get_tsc_hz());
  unsigned empty_polls = 0;
  snapshots_.online();
  while (!stop_.load(std::memory_order_relaxed)) {
    const Instant now = clock.now();
    const Snapshot& snapshot = snapshots_.read();
    const unsigned received = worker_.poll_once(snapshot, now);
    polls_.add();
    heartbeat_.add();
    generation_.set(snapshot.generation);
    if (received > 0) {
      empty_polls = 0;
      idle_.reset();
    } else if (!options_.busy_poll && !flows_.fragments.has_released() &&
               ++empty_polls >= kEmptyPollsBeforeSleep) {
      go_idle(now);
    }
    snapshots_.quiescent();
  }
  snapshots_.offline();
}

void WorkerThread::go_idle(Instant now) {
  flows_.tend(snapshots_.read(), now, kSweepBeforeSleep);
  sleeps_.add();
  snapshots_.offline();
  // Other workers may learn at any time what a held fragment waits for.
  idle_.sleep(flows_.fragments.held() > 0 ? FragmentTable::kAskEvery : IdleWait::kLongest);
  snapshots_.online();
}

WorkerStats WorkerThread::read_stats() const {
  return {.worker = options_.index,
          .cpu = options_.cpu,
          .packets = counters_.read(),
          .flows = flows_.table_counters(),
          .polls = polls_.read(),
          .sleeps = sleeps_.read(),
          .heartbeat = heartbeat_.read(),
          .snapshot_generation = generation_.read()};
}

}  // namespace holdfast

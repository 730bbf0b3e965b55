// SPDX-License-Identifier: Apache-2.0
// One worker: the way of a packet, from the receive queues to the transmit queues. It owns the
// burst and refers to what else it writes; one thread calls it. No clock, no EAL, no sleeping, no
// RCU: the thread around it (lb/worker_thread.h) brings the snapshot and the time.
#pragma once

#include <cstdint>

#include "lb/answer_rates.h"
#include "lb/burst.h"
#include "lib/base/instant.h"
#include "lib/base/token_bucket.h"
#include "lib/model/snapshot.h"

namespace holdfast {

class BurstWitness;
struct FlowContext;
struct WorkerCounters;
class PacketIo;

class Worker {
 public:
  // Entries of the flow table that one poll may sweep: while packets come, 16 cache lines; when
  // none wait, about as many as take a burst's time.
  static constexpr std::uint64_t kSweepBusy = 64;
  static constexpr std::uint64_t kSweepIdle = 4096;

  /// What a worker works with; all of it outlives the worker, none is shared with another one.
  struct Parts {
    PacketIo& io;
    FlowContext& flows;
    WorkerCounters& counters;
    std::uint32_t icmp_relay_rate = 1000;   // ICMP errors a second
    std::uint32_t icmp_answer_rate = 1000;  // answers of each kind a second
    BurstWitness* witness = nullptr;
  };
  explicit Worker(const Parts& parts)
      : io_(parts.io),
        flows_(parts.flows),
        counters_(parts.counters),
        witness_(parts.witness),
        icmp_relay_(parts.icmp_relay_rate),
        answer_rates_(parts.icmp_answer_rate) {}
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Held fragments that one poll gives back: so many bursts.
  static constexpr unsigned kReleasedBursts = 2;

  /// One burst all the way: at most Burst::kCapacity packets, each of which ends in exactly one
  /// outcome or is held; then those that were held and are not any longer. Returns how many were
  /// received; 0: the queues that had their turn were empty. `now` is used until the return only.
  unsigned poll_once(const Snapshot& now, Instant time) noexcept;

 private:
  void receive() noexcept;
  /// Fragments whose time has come go the way of all packets.
  [[gnu::noinline]] void tend_fragments(const Snapshot& now, Instant time) noexcept;
  /// The burst through all stages behind join_fragments().
  void run(const Snapshot& now, Instant time) noexcept;

  PacketIo& io_;
  FlowContext& flows_;
  WorkerCounters& counters_;
  BurstWitness* witness_;
  TokenBucket icmp_relay_;
  AnswerRates answer_rates_;
  Burst burst_{};
};

}  // namespace holdfast

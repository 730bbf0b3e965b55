// SPDX-License-Identifier: Apache-2.0
#include "lb/replay/replay.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "lb/burst.h"
#include "lb/burst_witness.h"
#include "lb/heap/heap_io.h"
#include "lb/worker.h"
#include "lb/worker_counters.h"

namespace holdfast {
namespace {

/// How often a worker of the daemon looks around while no packets come: at least, and while packets
/// wait for others.
constexpr std::chrono::milliseconds kIdle{100};
constexpr std::chrono::milliseconds kWaiting{1};

/// So many polls deal with all packets that are held: each does a part.
unsigned polls_for(std::uint64_t held) { return static_cast<unsigned>(held / 8 + 2); }

constexpr std::uint64_t kLeastEntries = 1024;  // as in [dataplane]

FlowOptions flow_options(const DataplaneConfig& config, unsigned workers, Instant start) {
  const std::uint64_t most = std::max(kLeastEntries, Replay::kMostEntries / workers);
  return {.capacity = std::min<std::uint64_t>(config.flow_capacity, most),
          .sibling_lookup_rate = std::numeric_limits<std::uint32_t>::max(),
          .start = start};
}

/// Writes down the verdicts of one worker's packets. A packet that was held comes again, and then
/// its last verdict counts.
class Clerk : public BurstWitness {
 public:
  Clerk(Ledger& ledger, HeapIo& io) : ledger_(ledger), io_(io) {}

  void see(const Burst& burst) noexcept override {
    for (Burst::Lane lane = 0; lane < burst.size; ++lane) {
      LedgerEntry& entry = ledger_[io_.arrival_of(burst.mbuf[lane])];
      entry.verdict = burst.verdict[lane];
      entry.service = burst.service[lane];
      entry.backend = burst.backend[lane];
    }
    for (unsigned i = 0; i < burst.extra_size; ++i)
      io_.set_arrival(burst.extra[i].mbuf, io_.arrival_of(burst.mbuf[burst.extra[i].lane]));
  }

 private:
  Ledger& ledger_;
  HeapIo& io_;
};

}  // namespace

class Replay::Lane {
 public:
  Lane(const DataplaneConfig& config, const FlowOptions& options, Ledger& ledger)
      : flows(options),
        clerk(ledger, io),
        worker({.io = io,
                .flows = flows,
                .counters = counters,
                .icmp_relay_rate = config.icmp_relay_rate,
                .icmp_answer_rate = config.icmp_answer_rate,
                .witness = &clerk}) {}

  HeapIo io{};
  FlowContext flows;
  WorkerCounters counters{};
  Clerk clerk;
  Worker worker;
};

Replay::Replay(const DataplaneConfig& config, unsigned workers, Instant start, Send send)
    : send_(std::move(send)), all_polled_(start) {
  const FlowOptions options = flow_options(config, workers, start);
  std::vector<FlowContext*> flows;
  for (unsigned i = 0; i < workers; ++i) {
    lanes_.push_back(std::make_unique<Lane>(config, options, ledger_));
    flows.push_back(&lanes_.back()->flows);
  }
  FlowContext::connect(flows);
}

Replay::~Replay() = default;

void Replay::handle(std::span<const std::uint8_t> frame, const Snapshot& now, Instant time) {
  if (time - all_polled_ >= (held() == 0 ? kIdle : kWaiting)) pass(now, time);
  const std::size_t index = ledger_.size();
  ledger_.emplace_back();
  Lane& taker = *lanes_[index % lanes_.size()];
  taker.io.push(frame, {}, index);
  poll(taker, now, time);
  // What the others hold may be what this one was waited for.
  for (const auto& lane : lanes_)
    if (lane.get() != &taker && lane->counters.held_now.read() != 0) poll(*lane, now, time);
}

void Replay::pass(const Snapshot& now, Instant time) {
  // What waits may be found in another worker's table meanwhile. Since no packet comes, nothing is
  // there later that was not there after the first looks.
  for (unsigned polls = polls_for(held()); polls > 0 && held() != 0; --polls) {
    if (all_polled_ + kWaiting >= time) break;
    poll_all(now, all_polled_ + kWaiting);
  }
  for (unsigned polls = polls_for(held()); polls > 0; --polls) {
    poll_all(now, time);
    if (held() == 0) break;
  }
}

void Replay::poll_all(const Snapshot& now, Instant time) {
  all_polled_ = time;
  for (const auto& lane : lanes_) poll(*lane, now, time);
}

void Replay::poll(Lane& lane, const Snapshot& now, Instant time) {
  static_cast<void>(lane.worker.poll_once(now, time));
  for (const HeapIo::Fate& fate : lane.io.take_fates())
    if (fate.kind == HeapIo::Fate::Kind::sent)
      ledger_[fate.arrival].outputs.push_back(send_(fate.frame));
}

std::uint64_t Replay::held() const {
  std::uint64_t held = 0;
  for (const auto& lane : lanes_) held += lane->counters.held_now.read();
  return held;
}

PacketCounters Replay::counters() const {
  PacketCounters sum;
  for (const auto& lane : lanes_) sum += lane->counters.read();
  return sum;
}

}  // namespace holdfast

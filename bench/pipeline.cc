// SPDX-License-Identifier: Apache-2.0
// The pipeline from parse to encapsulated, beside the bare loop: hits by number of flows.
#include <fmt/core.h>

#include <memory>
#include <stdexcept>
#include <utility>

#include "bench/bare_loop.h"
#include "bench/bed.h"
#include "bench/groups.h"
#include "lb/flow/flow_context.h"
#include "lb/stage/stages.h"
#include "lb/worker.h"
#include "lb/worker_counters.h"

namespace holdfast::bench {
namespace {

constexpr std::uint64_t kSlice = 1 << 18;  // packets
constexpr auto kStart = std::chrono::seconds{1000};

/// Packets of clients 0..flows-1 in an order that no cache likes.
class Clients {
 public:
  Clients(const Template& packet, std::uint64_t flows) : packet_(packet), order_(flows) {
    for (std::size_t i = 0; i < Buffers::kCount; ++i) packet_.lay_down(buffers_->next());
  }
  rte_mbuf* operator()() {
    rte_mbuf& mbuf = buffers_->next();
    packet_.write(mbuf, first_ + order_.next());
    return &mbuf;
  }
  /// Other clients than before.
  void move_on(std::uint64_t by) { first_ += by; }

 private:
  Template packet_;
  std::shared_ptr<Buffers> buffers_ = std::make_shared<Buffers>();
  Stride order_;
  std::uint64_t first_ = 0;
};

enum class Stage : std::uint8_t { parse, classify, pick_backend, encapsulate };

/// The stages alone, from parse to encapsulate, in the order of Worker::poll_once.
class Stages {
 public:
  Stages(const Snapshot& snapshot, std::uint64_t capacity)
      : snapshot_(snapshot), flows_({.capacity = capacity, .start = kStart}) {}

  /// `until`: the last stage to run.
  template <class Feed>
  std::uint64_t run(Feed& feed, std::uint64_t packets, Stage until = Stage::encapsulate) {
    for (std::uint64_t done = 0; done < packets; done += Burst::kCapacity) {
      burst_.size = Burst::kCapacity;
      for (rte_mbuf*& mbuf : burst_.mbuf) mbuf = feed();
      parse(burst_, snapshot_);
      if (until == Stage::parse) continue;
      classify(burst_, snapshot_, icmp_relay_, time_);
      if (until == Stage::classify) continue;
      pick_backend(burst_, snapshot_, flows_, time_);
      if (until == Stage::pick_backend) continue;
      encapsulate(burst_, snapshot_);
      forwarded += burst_.verdict[0].outcome == Outcome::forward;
    }
    return packets;
  }
  /// Opens the flow of each of `flows` packets: the second packet of each comes at once, so that
  /// there are never many embryonic entries.
  template <class Feed>
  void open(Feed& feed, std::uint64_t flows) {
    for (std::uint64_t done = 0; done < flows; done += Burst::kCapacity) {
      Feed again = feed;
      run(feed, Burst::kCapacity);
      run(again, Burst::kCapacity);
    }
  }
  void pass(Instant by) { time_ += by; }
  [[nodiscard]] std::uint64_t misses() const {
    const FlowTableCounters counters = flows_.table_counters();
    return counters.new_flows + counters.mid_flow_misses;
  }
  [[nodiscard]] FlowContext& flows() { return flows_; }

  std::uint64_t forwarded = 0;  // bursts whose first packet was

 private:
  const Snapshot& snapshot_;
  FlowContext flows_;
  TokenBucket icmp_relay_{1000};
  Instant time_ = kStart;
  Burst burst_{};
};

std::string count_text(std::uint64_t count) {
  return count >= 1'000'000 ? fmt::format("{}M", count / 1'000'000)
                            : fmt::format("{}k", count / 1000);
}

/// Everything at one number of flows.
void hits(Report& report, const Options& options, const Snapshot& snapshot, std::uint64_t flows) {
  const auto ack = Template::tcp(Family::ipv4, TcpHeader::kAck);
  Clients bare_clients(ack, flows);
  Clients our_clients(ack, flows);
  Clients generated(ack, flows);
  BareLoop bare(snapshot, flows * 5 / 4);
  Stages ours(snapshot, flows * 5 / 4);
  for (std::uint64_t i = 0; i < flows; ++i) bare.learn(*bare_clients());
  for (int i = 0; i < 3; ++i) {
    ours.open(our_clients, flows);
    ours.pass(std::chrono::seconds{11});
  }
  const std::uint64_t missed = ours.misses();

  const auto generate = [&] {
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < kSlice; ++i) sum += generated()->data_len;
    keep(sum);
    return kSlice;
  };
  const std::vector<Timing> timings = race(
      {{"generate", generate},
       {"bare loop", [&] { return bare.run(bare_clients, kSlice); }},
       {"ours", [&] { return ours.run(our_clients, kSlice); }},
       {"ours until parse", [&] { return ours.run(our_clients, kSlice, Stage::parse); }},
       {"ours until classify", [&] { return ours.run(our_clients, kSlice, Stage::classify); }},
       {"ours until pick", [&] { return ours.run(our_clients, kSlice, Stage::pick_backend); }}},
      options.rounds());
  const std::string prefix = "hit/" + count_text(flows);
  add_times(report, prefix, timings);
  report.add({prefix + "/ours to bare loop", Spread::of(ratios(timings[2], timings[1])), "ratio",
              at_most(flows > 1000 ? 1.25 : 2.0)});
  if (ours.misses() != missed) throw std::runtime_error("not every lookup hit");
}

}  // namespace

void run_pipeline(Report& report, const Options& options) {
  const auto snapshot = make_snapshot();
  for (const std::uint64_t flows : {1'000U, 1'000'000U, 10'000'000U})
    hits(report, options, *snapshot, flows);
}

}  // namespace holdfast::bench

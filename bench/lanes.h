// SPDX-License-Identifier: Apache-2.0
// Who takes part in races between pipelines: endless packets of many clients, and the stages from
// parse to encapsulate with a flow table of their own. One thread.
#pragma once

#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include "bench/bed.h"
#include "lb/flow/flow_context.h"
#include "lb/stage/stages.h"

namespace holdfast::bench {

inline constexpr auto kStart = std::chrono::seconds{1000};
/// Ten million packets a second: how fast time passes for the packets that a race sends.
inline constexpr std::chrono::nanoseconds kPacketTime{100};

/// Packets of the clients first..first+flows-1, over and over, in an order that no cache likes.
class Clients {
 public:
  Clients(const Template& packet, std::uint64_t flows, std::uint64_t first = 0)
      : packet_(packet), order_(flows), first_(first) {
    for (std::size_t i = 0; i < Buffers::kCount; ++i) packet_.lay_down(buffers_->next());
  }
  rte_mbuf* operator()() {
    rte_mbuf& mbuf = buffers_->next();
    packet_.write(mbuf, first_ + order_.next());
    return &mbuf;
  }

 private:
  Template packet_;
  std::shared_ptr<Buffers> buffers_ = std::make_shared<Buffers>();
  Stride order_;
  std::uint64_t first_;
};

/// Packets of clients of unequal weight: the k-th most active of `flows` sends 1/k of what the
/// first one sends (Zipf's law), in random order. Over and over the same million draws.
class UnequalClients {
 public:
  UnequalClients(const Template& packet, std::uint64_t flows) : packet_(packet) {
    for (std::size_t i = 0; i < Buffers::kCount; ++i) packet_.lay_down(buffers_->next());
    std::mt19937_64 random(1);
    // The inverse of the harmonic sum, which is near enough to a logarithm: rank = flows ^ u.
    std::uniform_real_distribution<double> u(0, 1);
    for (std::uint64_t& client : draws_)
      // Spread over all numbers, so that the most active ones are no neighbours.
      client = static_cast<std::uint64_t>(std::pow(static_cast<double>(flows), u(random))) *
               0x9e3779b97f4a7c15u % flows;
  }
  rte_mbuf* operator()() {
    rte_mbuf& mbuf = buffers_->next();
    packet_.write(mbuf, draws_[at_]);
    at_ = (at_ + 1) % draws_.size();
    return &mbuf;
  }

 private:
  Template packet_;
  std::shared_ptr<Buffers> buffers_ = std::make_shared<Buffers>();
  std::vector<std::uint64_t> draws_ = std::vector<std::uint64_t>(1 << 20);
  std::size_t at_ = 0;
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
      parse(burst_, snapshot_, io_);
      if (until == Stage::parse) continue;
      classify(burst_, snapshot_, flows_.table, icmp_relay_, time_);
      if (until == Stage::classify) continue;
      pick_backend(burst_, snapshot_, flows_, time_);
      if (until == Stage::pick_backend) continue;
      encapsulate(burst_, snapshot_, io_);
      time_ += tick;
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
  [[nodiscard]] Instant time() const { return time_; }
  [[nodiscard]] FlowContext& flows() { return flows_; }
  /// Opens the flows of `flows` clients and lets them go on until they are proven.
  template <class Feed>
  void prove(Feed& feed, std::uint64_t flows) {
    for (int round = 0; round < 3; ++round) {
      open(feed, flows);
      pass(std::chrono::seconds{11});
    }
  }
  [[nodiscard]] std::uint64_t misses() const {
    const FlowTableCounters counters = flows_.table_counters();
    return counters.new_flows + counters.mid_flow_misses;
  }

  std::uint64_t forwarded = 0;                      // bursts whose first packet was
  std::chrono::nanoseconds tick{32 * kPacketTime};  // a burst; 0: time stands still

 private:
  const Snapshot& snapshot_;
  FlowContext flows_;
  TokenBucket icmp_relay_{1000};
  MemoryIo<rte_mbuf* (*)()> io_{nullptr};  // never asked: all packets fit their tunnels
  Instant time_ = kStart;
  Burst burst_{};
};

}  // namespace holdfast::bench

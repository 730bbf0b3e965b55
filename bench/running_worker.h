// SPDX-License-Identifier: Apache-2.0
// A whole worker (receive to transmit) that is fed from memory and counts: for groups that ask what
// something does to the pipeline, not what the pipeline costs. One thread each.
#pragma once

#include <fmt/core.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>

#include "bench/bed.h"
#include "lb/flow/flow_context.h"
#include "lb/worker.h"
#include "lb/worker_counters.h"

namespace holdfast::bench {

/// ACKs of clients 0..flows-1, each toward one of the VIPs, in an order that no cache likes.
class SpreadClients {
 public:
  /// `vips`: IPv4; not empty.
  SpreadClients(std::uint64_t flows, std::span<const IpAddress> vips) : order_(flows) {
    for (const IpAddress& vip : vips) vips_.push_back(vip.as_v4());
    for (std::size_t i = 0; i < Buffers::kCount; ++i) packet_.lay_down(buffers_->next());
  }
  rte_mbuf* operator()() {
    const std::uint64_t flow = order_.next();
    rte_mbuf& mbuf = buffers_->next();
    packet_.write(mbuf, flow);
    std::memcpy(rte_pktmbuf_mtod(&mbuf, std::uint8_t*) + kDestinationAt,
                &vips_[flow % vips_.size()], 4);
    return &mbuf;
  }

 private:
  static constexpr std::size_t kDestinationAt = 14 + 16;

  Template packet_ = Template::tcp(Family::ipv4, TcpHeader::kAck);
  std::shared_ptr<Buffers> buffers_ = std::make_shared<Buffers>();
  std::vector<Be32> vips_;
  Stride order_;
};

class RunningWorker {
 public:
  /// Its clients are `flows` many; the table has room for five fourths of them.
  RunningWorker(std::uint64_t flows, std::span<const IpAddress> vips)
      : io_(SpreadClients(flows, vips)), flows_({.capacity = flows * 5 / 4, .start = kStart}) {
    count_ = flows;
  }

  /// Sends each client's packet until all flows are proven: then every packet is a hit.
  void settle(const Snapshot& snapshot) {
    for (int pass = 0; pass < 4; ++pass) {
      static_cast<void>(run([&]() -> const Snapshot& { return snapshot; }, count_));
      time_ += std::chrono::seconds{11};  // another period of activity
    }
    hits_before_ = flows_.events.hits.read();
    packets_ = 0;
  }
  /// Handles at least `packets`; `snapshot()` is asked before each burst, as a worker does.
  template <class Source>
  std::uint64_t run(Source snapshot, std::uint64_t packets) {
    std::uint64_t done = 0;
    while (done < packets) done += worker_.poll_once(snapshot(), time_);
    packets_ += done;
    return done;
  }
  std::uint64_t run(const Snapshot& snapshot, std::uint64_t packets) {
    return run([&]() -> const Snapshot& { return snapshot; }, packets);
  }
  /// Throws unless every packet since settle() was a hit and was sent; a few flows may have found
  /// no place in the table.
  void require_hits(const char* who) const {
    const std::uint64_t hits = flows_.events.hits.read() - hits_before_;
    if (hits + packets_ / 1000 < packets_ ||
        counters_.forwarded.read() != counters_.received.read())
      throw std::runtime_error(fmt::format("{}: of {} packets {} were hits", who, packets_, hits));
  }

 private:
  static constexpr std::chrono::seconds kStart{1000};

  MemoryIo<SpreadClients> io_;
  FlowContext flows_;
  WorkerCounters counters_{};
  Worker worker_{{.io = io_, .flows = flows_, .counters = counters_}};
  Instant time_{kStart};
  std::uint64_t count_ = 0;
  std::uint64_t packets_ = 0;
  std::uint64_t hits_before_ = 0;
};

}  // namespace holdfast::bench

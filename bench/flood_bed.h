// SPDX-License-Identifier: Apache-2.0
// A worker with real clients, before strangers come: the whole of Worker::poll_once over packets in
// memory, in simulated time. It knows where each client's flow lives and notices when a packet of
// one goes elsewhere. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "bench/bed.h"
#include "lb/burst.h"
#include "lb/flow/flow_context.h"
#include "lb/worker.h"
#include "lb/worker_counters.h"

namespace holdfast::bench {

/// Packets of one kind, written into buffers of their own.
class Packets {
 public:
  explicit Packets(const Template& shape) : shape_(shape) {
    for (std::size_t i = 0; i < Buffers::kCount; ++i) shape_.lay_down(buffers_.next());
  }
  [[nodiscard]] rte_mbuf* of(std::uint64_t client) {
    rte_mbuf& mbuf = buffers_.next();
    shape_.write(mbuf, client);
    return &mbuf;
  }

 private:
  Template shape_;
  Buffers buffers_{};
};

/// Hands out the packets that are put in, and keeps none.
class BurstIo final : public PacketIo {
 public:
  void put(std::span<rte_mbuf* const> packets) { waiting_ = packets; }

  [[nodiscard]] unsigned receive(std::span<rte_mbuf*> into) override;
  [[nodiscard]] unsigned transmit(PortNumber, std::span<rte_mbuf*> packets) override {
    return static_cast<unsigned>(packets.size());
  }
  [[nodiscard]] bool to_kernel(rte_mbuf*) override { return true; }
  void free(std::span<rte_mbuf*>) override {}
  [[nodiscard]] PortNumber came_from(const rte_mbuf&) const override { return PortNumber{0}; }
  [[nodiscard]] rte_mbuf* allocate() override { return nullptr; }

 private:
  std::span<rte_mbuf* const> waiting_{};
};

class FloodBed {
 public:
  /// Clients 0..clients-1 open TCP flows and use them until they are proven, while 100 backends are
  /// there. Then five backends are added and two removed; the clients of those two are placed anew,
  /// and in the end all are proven again. `capacity`: entries of the flow table. Throws
  /// std::runtime_error when not every client has an entry.
  FloodBed(std::uint64_t capacity, std::uint64_t clients);

  /// Up to a burst of packets, whoever they are from.
  void poll(std::span<rte_mbuf* const> packets) {
    io_.put(packets);
    worker_.poll_once(*snapshot_, time_);
  }
  /// Packets of real clients, proven or new.
  [[nodiscard]] rte_mbuf* syn(std::uint64_t client) { return syn_.of(client); }
  [[nodiscard]] rte_mbuf* ack(std::uint64_t client) { return ack_.of(client); }
  [[nodiscard]] rte_mbuf* data(std::uint64_t client) { return data_.of(client); }

  /// Where a packet went that was polled; kNoBackend: nowhere.
  [[nodiscard]] static BackendNumber went_to(const rte_mbuf& mbuf);
  /// Where the packets of one of the first clients went before.
  [[nodiscard]] BackendNumber home_of(std::uint64_t client) const { return home_[client]; }
  [[nodiscard]] bool is_recorded(std::uint64_t client);
  /// Each of the first clients sends data: how many do not go where they went before.
  [[nodiscard]] std::uint64_t count_moved();
  /// Each of the first clients sends data and may go elsewhere than before.
  void settle();

  /// The two backends that were removed are added again.
  void bring_back();
  /// Of all slots those that have got another owner since the clients began.
  [[nodiscard]] double share_of_slots_moved() const;
  /// Of the first clients those that would go elsewhere if there were no flow table.
  [[nodiscard]] double share_held_by_entries();

  void pass(Instant by) { time_ += by; }
  [[nodiscard]] Instant time() const { return time_; }
  [[nodiscard]] std::uint64_t clients() const { return home_.size(); }
  [[nodiscard]] FlowTableCounters table() const { return flows_.table_counters(); }
  [[nodiscard]] PacketCounters packets() const { return counters_->read(); }

 private:
  /// Backends `from` up to `to` are configured.
  void configure(std::uint16_t from, std::uint16_t to);
  void open_all();
  /// A burst of data of clients `first`, `first` + 1, ...
  std::span<rte_mbuf* const> send_data(std::uint64_t first);
  [[nodiscard]] FlowHash hash_of(std::uint64_t client);

  std::unique_ptr<Snapshot> snapshot_;
  std::shared_ptr<const SlotTable> first_slots_;
  FlowContext flows_;
  FlowContext sibling_;  // another worker's: it knows nothing, and is asked
  std::unique_ptr<WorkerCounters> counters_ = std::make_unique<WorkerCounters>();
  BurstIo io_{};
  Worker worker_;
  Instant time_;
  Packets syn_;
  Packets ack_;
  Packets data_;
  std::array<rte_mbuf*, Burst::kCapacity> burst_{};
  std::vector<BackendNumber> home_;
};

}  // namespace holdfast::bench

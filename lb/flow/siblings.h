// SPDX-License-Identifier: Apache-2.0
// The other workers' flow tables, as one worker sees them: it reads them (never writes) when its
// own does not know a flow, and tells their owners which flows it has copied. So correctness never
// depends on how a NIC spreads packets over workers. One object a worker; connected once, before
// the workers run; then each method belongs to the thread that its section names.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lb/flow/flow_table.h"
#include "lb/flow/handover_ring.h"

namespace holdfast {

class Siblings {
 public:
  struct Found {
    FlowTable::Sighting flow{};
    unsigned owner = 0;  // for tell()
  };

  explicit Siblings(FlowTable& own) : own_(own) {}
  Siblings(const Siblings&) = delete;
  Siblings& operator=(const Siblings&) = delete;

  /// Makes a ring for each ordered pair. Call once, before any worker runs; all must outlive the
  /// workers.
  static void connect(const std::vector<Siblings*>& all);

  // Owner only.
  [[nodiscard]] bool any() const { return !peers_.empty(); }
  /// Brings what find() will look at into the cache: the tables are far away. Call it some packets
  /// ahead.
  void prefetch(const FlowHash& hash) const {
    for (const Peer& peer : peers_) peer.sibling->own_.prefetch(hash);
  }
  /// Looks for the flow in every other table; the first that knows it is taken. A flow that two
  /// others hand over meanwhile is not missed.
  [[nodiscard]] std::optional<Found> find(const FlowHash& hash) const;
  /// tell() would succeed now.
  [[nodiscard]] bool can_tell(unsigned owner) const { return peers_[owner].to_it->has_room(); }
  /// Asks the owner of a found flow to drop it. Forgotten when its ring is full.
  void tell(unsigned owner, const Handover& message);
  /// Asks all others to drop what they may still have of a flow.
  void tell_all(const Handover& message);
  /// Drops from the own table what others have copied.
  void read_messages();

 private:
  struct Peer {
    Siblings* sibling = nullptr;
    HandoverRing* to_it = nullptr;  // owned by the sibling
  };

  /// What all workers share.
  struct alignas(64) Shared {
    std::atomic<std::uint64_t> told{0};  // messages, counted before they are sent
  };

  FlowTable& own_;
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  std::vector<Peer> peers_;
  std::vector<std::unique_ptr<HandoverRing>> inbox_;  // one for each peer that may write
  alignas(64) std::atomic<bool> mail_{false};         // peers set it, the owner clears it
};

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// Where one flow belongs by a snapshot: the choice itself, without flow table, counters or packet.
// pick_backend decides with it, and so does the answer to `holdfast lookup`, so that both say the
// same. Reads only; any thread that may read the snapshot.
#pragma once

#include "lb/flow/flow_life.h"
#include "lib/flow/flow_key.h"
#include "lib/model/snapshot.h"

namespace holdfast {

[[nodiscard]] constexpr bool begins_flow(FlowEvent event) {
  return event == FlowEvent::syn || event == FlowEvent::datagram;
}

[[nodiscard]] constexpr bool ends_flow(FlowEvent event) {
  return event == FlowEvent::fin || event == FlowEvent::rst;
}

/// A packet that its own worker does not know the flow of may belong to one in another's table. A
/// SYN does not: it begins a flow.
[[nodiscard]] constexpr bool may_be_elsewhere(FlowEvent event) { return event != FlowEvent::syn; }

/// One flow before one snapshot.
struct Placement {
  const Snapshot& snapshot;
  const Service& service;
  FlowHash hash;

  [[nodiscard]] BackendNumber base_owner() const {
    return owner_in(snapshot.pool(service.pool).base);
  }
  [[nodiscard]] BackendNumber effective_owner() const {
    return owner_in(snapshot.pool(service.pool).effective);
  }
  /// The slot's base owner if no check has decided about it since the start, else kNoBackend.
  [[nodiscard]] BackendNumber unchecked_owner() const {
    return base_owner_if(
        [](const Backend& backend) { return backend.state == BackendState::unchecked; });
  }
  /// Flows that begin in this slot wait for its base owner's first check.
  [[nodiscard]] bool awaits_check() const {
    const BackendNumber owner = unchecked_owner();
    return owner != kNoBackend && snapshot.backend(owner)->awaits_check;
  }

  /// For a flow that begins. While the base owner's first check is awaited it waits (kNoBackend):
  /// the client sends again, and nobody has been moved by our restart.
  [[nodiscard]] BackendNumber pick_new() const {
    return awaits_check() ? kNoBackend : effective_owner();
  }
  /// The slot's base owner if it was eligible until a moment ago and keeps such flows for its
  /// grace, else kNoBackend.
  [[nodiscard]] BackendNumber owner_in_grace() const {
    return base_owner_if([this](const Backend& backend) {
      return backend.state == BackendState::down &&
             standing_of(&backend, service) != Standing::gone;
    });
  }
  /// For a flow that others knew, before a restart or on another load balancer: where it most
  /// likely is. Of the flows of a slot whose owner went down seconds ago nearly all began before.
  [[nodiscard]] BackendNumber pick_mid_flow() const {
    if (const BackendNumber owner = unchecked_owner(); owner != kNoBackend) return owner;
    if (const BackendNumber owner = owner_in_grace(); owner != kNoBackend) return owner;
    return effective_owner();
  }
  /// No table knows the flow.
  [[nodiscard]] BackendNumber pick_for_unknown(FlowEvent event) const {
    return begins_flow(event) ? pick_new() : pick_mid_flow();
  }
  /// The worker's own entry no longer decides: its backend does not keep the flow, or a SYN begins
  /// a new one.
  [[nodiscard]] BackendNumber pick_anew(FlowEvent event) const {
    return event == FlowEvent::syn ? pick_new() : effective_owner();
  }

  /// For any packet of a stateless service, and what is about one: no table knows it, and there is
  /// no flow that could have begun elsewhere.
  [[nodiscard]] BackendNumber pick_stateless() const { return effective_owner(); }

  /// What the backend of an entry means for its flow. One that no longer keeps its flows keeps them
  /// all the same where Maglev has nothing better: only draining backends are left.
  [[nodiscard]] Standing standing(BackendNumber backend) const {
    const Standing standing = standing_of(snapshot.backend(backend), service);
    if (standing == Standing::gone && effective_owner() == backend) return Standing::leaving;
    return standing;
  }
  /// A packet meets an entry that has not expired, on `backend`.
  [[nodiscard]] LifeStep meet(FlowLife life, BackendNumber backend, FlowEvent event, FlowTime now,
                              FlowTime idle) const {
    return live(life, event, standing(backend), now, idle);
  }

 private:
  /// kNoBackend where there is none, or the predicate does not hold for it.
  template <class Predicate>
  [[nodiscard]] BackendNumber base_owner_if(Predicate predicate) const {
    const BackendNumber owner = base_owner();
    const Backend* const backend = owner == kNoBackend ? nullptr : snapshot.backend(owner);
    return backend != nullptr && predicate(*backend) ? owner : kNoBackend;
  }
  [[nodiscard]] BackendNumber owner_in(const std::shared_ptr<const SlotTable>& table) const {
    if (!table || table->empty()) return kNoBackend;
    return (*table)[maglev_slot(hash, static_cast<std::uint32_t>(table->size()))];
  }
};

}  // namespace holdfast

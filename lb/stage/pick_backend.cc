// SPDX-License-Identifier: Apache-2.0
// Which backend takes the packet: the flow table if it knows the flow (and the flow may stay), else
// another worker's table, else Maglev.
#include <optional>

#include "lb/flow/flow_context.h"
#include "lb/flow/flow_life.h"
#include "lb/stage/stages.h"

namespace holdfast {
namespace {

/// One packet, with all that deciding about it needs.
struct Question {
  FlowHash hash;
  ServiceNumber number;
  const Service& service;
  FlowEvent event;
  const Snapshot& snapshot;
  FlowContext& flows;
};

[[nodiscard]] BackendNumber owner_of_slot(const std::shared_ptr<const SlotTable>& table,
                                          const FlowHash& hash) {
  if (!table || table->empty()) return kNoBackend;
  return (*table)[maglev_slot(hash, static_cast<std::uint32_t>(table->size()))];
}

[[nodiscard]] BackendNumber effective_owner(const Question& q) {
  return owner_of_slot(q.snapshot.pool(q.service.pool).effective, q.hash);
}

/// The slot's base owner if the first checks after a start have not reached it yet, else
/// kNoBackend.
[[nodiscard]] BackendNumber unchecked_owner(const Question& q) {
  const BackendNumber owner = owner_of_slot(q.snapshot.pool(q.service.pool).base, q.hash);
  const Backend* const backend = owner == kNoBackend ? nullptr : q.snapshot.backend(owner);
  return backend != nullptr && backend->state == BackendState::unchecked ? owner : kNoBackend;
}

/// For a flow that begins. While the slot's base owner is not yet checked it waits (kNoBackend):
/// the client sends again, and nobody has been moved by our restart.
[[nodiscard]] BackendNumber pick_new(const Question& q) {
  return unchecked_owner(q) == kNoBackend ? effective_owner(q) : kNoBackend;
}

/// For a flow that others knew, before a restart or on another load balancer: where it most likely
/// is.
[[nodiscard]] BackendNumber pick_mid_flow(const Question& q) {
  const BackendNumber owner = unchecked_owner(q);
  return owner == kNoBackend ? effective_owner(q) : owner;
}

[[nodiscard]] bool begins_flow(FlowEvent event) {
  return event == FlowEvent::syn || event == FlowEvent::datagram;
}

[[nodiscard]] bool ends_flow(FlowEvent event) {
  return event == FlowEvent::fin || event == FlowEvent::rst;
}

[[nodiscard]] FlowEntry embryo(const Question& q, BackendNumber backend) {
  return FlowEntry::make(flow_tag(q.hash), backend, q.number, {FlowState::embryonic, 0},
                         !begins_flow(q.event), q.flows.now);
}

/// What the entry's backend means for its flow. One that no longer keeps its flows keeps them all
/// the same where Maglev has nothing better: only draining backends are left.
[[nodiscard]] Standing standing_in(const Question& q, BackendNumber backend) {
  const Standing standing = standing_of(q.snapshot.backend(backend), q.service);
  if (standing == Standing::gone && effective_owner(q) == backend) return Standing::leaving;
  return standing;
}

/// The entry no longer decides: its backend does not keep the flow, or a SYN begins a new one.
[[nodiscard]] BackendNumber place_anew(const Question& q, FlowTable::Place place,
                                       const FlowEntry& entry) {
  FlowContext& flows = q.flows;
  const bool syn = q.event == FlowEvent::syn;
  const BackendNumber backend = syn ? pick_new(q) : effective_owner(q);
  if (backend == kNoBackend) return kNoBackend;
  if (ends_flow(q.event)) {
    flows.table.drop_gone(place);
    return backend;
  }
  flows.table.update(place, entry, embryo(q, backend));
  flows.counts.count_new_flow(q.number, backend);
  (syn ? flows.events.new_flows : flows.events.repicked).add();
  return backend;
}

[[nodiscard]] BackendNumber meet_entry(const Question& q, FlowTable::Place place,
                                       const FlowEntry& entry) {
  FlowContext& flows = q.flows;
  flows.events.hits.add();
  const FlowLife life = entry.life();
  const LifeStep step =
      live(life, q.event, standing_in(q, entry.backend()), flows.now, entry.idle(flows.now));
  if (step.anew) return place_anew(q, place, entry);

  FlowEntry next = entry;
  next.set_life(step.next);
  next.set_service(q.number);
  if (step.refresh) next.set_last_seen(flows.now);
  if (step.restart) {
    next.set_first_seen(flows.now);
    next.set_adopted(false);
    flows.events.new_flows.add();
    flows.counts.count_new_flow(q.number, entry.backend());
  }
  flows.table.update(place, entry, next);
  // Two workers may have copied the flow at once; whoever sees its end clears up.
  if (entry.adopted() && step.next.closing() && !life.closing())
    flows.siblings.tell_all({q.hash, entry.backend()});
  return entry.backend();
}

/// Looks in the other workers' tables, within the budget.
[[nodiscard]] std::optional<Siblings::Found> ask_siblings(const Question& q) {
  FlowContext& flows = q.flows;
  if (!flows.siblings.any()) return std::nullopt;
  if (!flows.sibling_lookups.take(flows.clock)) {
    flows.events.sibling_refused.add();
    return std::nullopt;
  }
  return flows.siblings.find(q.hash);
}

/// A flow that lives in another worker's table: goes where it went, and moves here if there is
/// room. kNoBackend: its backend does not keep it.
[[nodiscard]] BackendNumber adopt(const Question& q, const Siblings::Found& found) {
  FlowContext& flows = q.flows;
  const BackendNumber backend = found.flow.backend;
  // How long it has been silent stands in a word that only its owner may read; the packet in hand
  // is the proof that it lives.
  const LifeStep step =
      live(found.flow.life, q.event, standing_in(q, backend), flows.now, FlowTime{0});
  if (step.anew) {
    // It is placed here now: the owner must not go on with what it has.
    flows.siblings.tell(found.owner, {q.hash, backend});
    return kNoBackend;
  }
  flows.events.sibling_hits.add();
  const auto copy =
      FlowEntry::make(flow_tag(q.hash), backend, q.number, step.next, true, flows.now);
  // Not without telling its owner: two entries of one flow would go ways of their own.
  if (flows.siblings.can_tell(found.owner) &&
      flows.table.insert(q.hash, copy, q.snapshot, flows.now))
    flows.siblings.tell(found.owner, {q.hash, backend});
  return backend;
}

[[nodiscard]] BackendNumber meet_nothing(const Question& q) {
  FlowContext& flows = q.flows;
  if (q.event != FlowEvent::syn)
    if (const auto found = ask_siblings(q))
      if (const BackendNumber backend = adopt(q, *found); backend != kNoBackend) return backend;

  const bool begins = begins_flow(q.event);
  const BackendNumber backend = begins ? pick_new(q) : pick_mid_flow(q);
  if (backend == kNoBackend) return kNoBackend;
  (begins ? flows.events.new_flows : flows.events.mid_flow_misses).add();
  if (ends_flow(q.event)) return backend;
  const bool recorded = flows.table.insert(q.hash, embryo(q, backend), q.snapshot, flows.now);
  // Each packet of an unrecorded flow is a mid-flow miss: only its first one is a new flow.
  if (recorded || begins) flows.counts.count_new_flow(q.number, backend);
  return backend;
}

/// An ICMP error goes where the flow that it is about goes. Anyone can send one, so it records
/// nothing and keeps nothing alive.
[[nodiscard]] BackendNumber follow_flow(const Question& q) {
  const auto keeps = [&](BackendNumber backend) {
    return standing_of(q.snapshot.backend(backend), q.service) != Standing::gone;
  };
  FlowTable& table = q.flows.table;
  if (const auto place = table.find(q.hash); place != FlowTable::kNowhere) {
    const BackendNumber backend = table.at(place).backend();
    return keeps(backend) ? backend : effective_owner(q);
  }
  if (const auto found = ask_siblings(q); found && keeps(found->flow.backend))
    return found->flow.backend;
  return pick_mid_flow(q);
}

[[nodiscard]] BackendNumber place_packet(const Question& q) {
  FlowTable& table = q.flows.table;
  const auto place = table.find(q.hash);
  if (place == FlowTable::kNowhere) return meet_nothing(q);
  const FlowEntry entry = table.at(place);
  if (is_expired(entry.life().state, entry.idle(q.flows.now), q.service)) {
    table.expire(place);  // the sweep has not come by yet
    return meet_nothing(q);
  }
  return meet_entry(q, place, entry);
}

}  // namespace

void pick_backend(Burst& burst, const Snapshot& now, FlowContext& flows, Instant time) noexcept {
  flows.set_now(time);
  burst.for_undecided([&](Burst::Lane lane) { flows.table.prefetch(burst.hash[lane]); });
  burst.for_undecided([&](Burst::Lane lane) {
    const ParsedPacket& packet = burst.packet[lane];
    const ServiceNumber number = burst.service[lane];
    const bool about_flow = packet.kind == PacketKind::icmp_error;
    const Question question{.hash = burst.hash[lane],
                            .number = number,
                            .service = *now.service(number),
                            .event = event_of(packet.kind, packet.tcp_flags, packet.has_payload),
                            .snapshot = now,
                            .flows = flows};
    burst.backend[lane] = about_flow ? follow_flow(question) : place_packet(question);
    if (burst.backend[lane] == kNoBackend) burst.drop(lane, DropReason::no_backend);
  });
}

}  // namespace holdfast

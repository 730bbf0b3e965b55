// SPDX-License-Identifier: Apache-2.0
// Which backend takes the packet: the flow table if it knows the flow (and the flow may stay), else
// another worker's table, else Maglev.
#include <optional>

#include "lb/flow/flow_context.h"
#include "lb/flow/placement.h"
#include "lb/stage/stages.h"

namespace holdfast {
namespace {

/// One packet, with all that deciding about it needs.
struct Question {
  Placement flow;
  ServiceNumber number;
  FlowEvent event;
  FlowContext& flows;
};

[[nodiscard]] FlowEntry embryo(const Question& q, BackendNumber backend) {
  return FlowEntry::make(flow_tag(q.flow.hash), backend, q.number, {FlowState::embryonic, 0},
                         !begins_flow(q.event), q.flows.now);
}

/// The entry no longer decides: its backend does not keep the flow, or a SYN begins a new one.
[[nodiscard]] BackendNumber place_anew(const Question& q, FlowTable::Place place,
                                       const FlowEntry& entry) {
  FlowContext& flows = q.flows;
  const bool syn = q.event == FlowEvent::syn;
  const BackendNumber backend = q.flow.pick_anew(q.event);
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
      q.flow.meet(life, entry.backend(), q.event, flows.now, entry.idle(flows.now));
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
    flows.siblings.tell_all({q.flow.hash, entry.backend()});
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
  return flows.siblings.find(q.flow.hash);
}

/// A flow that lives in another worker's table: goes where it went, and moves here if there is
/// room. kNoBackend: its backend does not keep it.
[[nodiscard]] BackendNumber adopt(const Question& q, const Siblings::Found& found) {
  FlowContext& flows = q.flows;
  const BackendNumber backend = found.flow.backend;
  // How long it has been silent stands in a word that only its owner may read; the packet in hand
  // is the proof that it lives.
  const LifeStep step = q.flow.meet(found.flow.life, backend, q.event, flows.now, FlowTime{0});
  if (step.anew) {
    // It is placed here now: the owner must not go on with what it has.
    flows.siblings.tell(found.owner, {q.flow.hash, backend});
    return kNoBackend;
  }
  flows.events.sibling_hits.add();
  const auto copy =
      FlowEntry::make(flow_tag(q.flow.hash), backend, q.number, step.next, true, flows.now);
  // Not without telling its owner: two entries of one flow would go ways of their own.
  if (flows.siblings.can_tell(found.owner) &&
      flows.table.insert(q.flow.hash, copy, q.flow.snapshot, flows.now))
    flows.siblings.tell(found.owner, {q.flow.hash, backend});
  return backend;
}

[[nodiscard]] BackendNumber meet_nothing(const Question& q) {
  FlowContext& flows = q.flows;
  if (may_be_elsewhere(q.event))
    if (const auto found = ask_siblings(q))
      if (const BackendNumber backend = adopt(q, *found); backend != kNoBackend) return backend;

  const bool begins = begins_flow(q.event);
  const BackendNumber backend = q.flow.pick_for_unknown(q.event);
  if (backend == kNoBackend) return kNoBackend;
  (begins ? flows.events.new_flows : flows.events.mid_flow_misses).add();
  if (ends_flow(q.event)) return backend;
  const bool recorded =
      flows.table.insert(q.flow.hash, embryo(q, backend), q.flow.snapshot, flows.now);
  // Each packet of an unrecorded flow is a mid-flow miss: only its first one is a new flow.
  if (recorded || begins) flows.counts.count_new_flow(q.number, backend);
  return backend;
}

[[nodiscard]] bool has_expired(const Question& q, const FlowEntry& entry) {
  return is_expired(entry.life().state, entry.idle(q.flows.now), q.flow.service);
}

/// An ICMP error goes where the flow that it is about goes. Anyone can send one, so it records
/// nothing, keeps nothing alive and ends nothing: an expired entry is left to the sweep.
[[nodiscard]] BackendNumber follow_flow(const Question& q) {
  const auto keeps = [&](BackendNumber backend) {
    return standing_of(q.flow.snapshot.backend(backend), q.flow.service) != Standing::gone;
  };
  FlowTable& table = q.flows.table;
  const auto place = table.find(q.flow.hash);
  if (place != FlowTable::kNowhere && !has_expired(q, table.at(place))) {
    const BackendNumber backend = table.at(place).backend();
    return keeps(backend) ? backend : q.flow.effective_owner();
  }
  if (const auto found = ask_siblings(q); found && keeps(found->flow.backend))
    return found->flow.backend;
  return q.flow.pick_mid_flow();
}

[[nodiscard]] BackendNumber place_packet(const Question& q) {
  FlowTable& table = q.flows.table;
  const auto place = table.find(q.flow.hash);
  if (place == FlowTable::kNowhere) return meet_nothing(q);
  const FlowEntry entry = table.at(place);
  if (has_expired(q, entry)) {
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
    const Question question{.flow = {now, *now.service(number), burst.hash[lane]},
                            .number = number,
                            .event = event_of(packet.kind, packet.tcp_flags, packet.has_payload),
                            .flows = flows};
    burst.backend[lane] = about_flow ? follow_flow(question) : place_packet(question);
    if (burst.backend[lane] == kNoBackend) burst.drop(lane, DropReason::no_backend);
  });
}

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// Which backend takes the packet: the flow table if it knows the flow (and the flow may stay), else
// another worker's table, else Maglev. Of a stateless service Maglev alone.
#include <algorithm>
#include <array>
#include <optional>

#include "lb/flow/flow_context.h"
#include "lb/flow/placement.h"
#include "lb/stage/stages.h"
#include "lib/net/ip_walk.h"

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

/// The worker's own table does not know the flow. `elsewhere`: nor do others, or they were not
/// asked, if it is nothing.
[[nodiscard]] BackendNumber meet_nothing(const Question& q,
                                         const std::optional<Siblings::Found>& elsewhere) {
  FlowContext& flows = q.flows;
  if (elsewhere)
    if (const BackendNumber backend = adopt(q, *elsewhere); backend != kNoBackend) return backend;

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

/// An ICMP error goes where the flow that it is about goes, and a later fragment where its first
/// one does. Anyone can send one, so it records nothing, keeps nothing alive and ends nothing: an
/// expired entry is left to the sweep.
[[nodiscard]] BackendNumber follow_flow(const Question& q, FlowTable::Place place,
                                        const std::optional<Siblings::Found>& elsewhere) {
  const auto keeps = [&](BackendNumber backend) {
    return standing_of(q.flow.snapshot.backend(backend), q.flow.service) != Standing::gone;
  };
  if (place != FlowTable::kNowhere) {
    const BackendNumber backend = q.flows.table.at(place).backend();
    return keeps(backend) ? backend : q.flow.effective_owner();
  }
  if (elsewhere && keeps(elsewhere->flow.backend)) return elsewhere->flow.backend;
  return q.flow.pick_for_unknown(q.event);
}

/// The stage at work on one burst. Twice over it: first for what the own table can decide, then for
/// what others may know.
class PickBackend {
 public:
  PickBackend(Burst& burst, const Snapshot& now, FlowContext& flows)
      : burst_(burst), now_(now), flows_(flows) {}

  void run() {
    burst_.for_undecided([this](Burst::Lane lane) {
      const auto place = find(lane);
      if (!carry_on(lane, place)) decide(lane, place);
    });
    for (unsigned i = 0; i < waiting_count_; ++i) decide_with_siblings(waiting_[i]);
    flows_.events.hits.add(hits_);
  }

 private:
  [[nodiscard]] FlowTable::Place find(Burst::Lane lane) const {
    return flows_.table.find(burst_.buckets[lane], burst_.hash[lane]);
  }

  /// The short way, for nearly every packet of a stream: its flow is known, and goes on as it did.
  /// False: nothing is done, and decide() has to.
  [[nodiscard]] bool carry_on(Burst::Lane lane, FlowTable::Place place) {
    const ParsedPacket& packet = burst_.packet[lane];
    const ServiceNumber number = burst_.service[lane];
    if (place == FlowTable::kNowhere) return false;
    const FlowEntry entry = flows_.table.at(place);
    const Service& service = *now_.service(number);
    const Backend* const backend = now_.backend(entry.backend());
    const FlowTime idle = entry.idle(flows_.now);
    const bool goes_on = only_continues(packet.kind, packet.tcp_flags) &&
                         entry.service() == number &&
                         stays_established(entry.life(), flows_.now, idle) &&
                         !is_expired(FlowState::established, idle, service) && backend != nullptr &&
                         standing_of(backend, service) == Standing::eligible;
    if (!goes_on) return false;
    flows_.table.touch(place, entry, flows_.now);
    burst_.backend[lane] = entry.backend();
    ++hits_;
    return true;
  }

  /// A packet that waits for the second pass.
  struct Waiting {
    Burst::Lane lane;
    bool may_ask;  // a token was taken for it
  };

  /// Not inlined: it would take the registers of the short way.
  [[gnu::noinline]] void decide(Burst::Lane lane, FlowTable::Place found) {
    const Question q = question(lane);
    const bool stateless = q.flow.service.stateless;
    const auto place = stateless ? FlowTable::kNowhere : still_counts(q, lane, found);
    if ((place == FlowTable::kNowhere || is_about_flow(lane)) && comes_from_vip(lane)) {
      const bool v4 = burst_.packet[lane].family == Family::ipv4;
      burst_.drop(lane, v4 ? DropReason::ipv4_source_is_vip : DropReason::ipv6_source_is_vip);
      return;
    }
    if (stateless) return go_to(lane, q.flow.pick_stateless());
    if (place == FlowTable::kNowhere) {
      // Behind an earlier packet of its flow, whatever it is: neither a SYN nor one that the budget
      // refuses may place anew what that one is about to find.
      if (waits(q.flow.hash)) return wait(lane, false);
      if (may_ask_siblings(q, lane)) {
        flows_.siblings.prefetch(q.flow.hash);
        return wait(lane, true);
      }
    }
    settle(q, lane, place, std::nullopt);
  }

  void wait(Burst::Lane lane, bool may_ask) { waiting_[waiting_count_++] = {lane, may_ask}; }

  [[nodiscard]] bool waits(const FlowHash& hash) const {
    return std::any_of(waiting_.begin(), waiting_.begin() + waiting_count_,
                       [&](const Waiting& one) { return burst_.hash[one.lane] == hash; });
  }

  /// What was fetched by decide() is in the cache by now. The own table is asked again: an earlier
  /// packet of the same flow may have brought it. If it did not, each one pays for its own look.
  void decide_with_siblings(Waiting waiting) {
    const Question q = question(waiting.lane);
    const auto place = still_counts(q, waiting.lane, find(waiting.lane));
    const bool asks =
        place == FlowTable::kNowhere && (waiting.may_ask || may_ask_siblings(q, waiting.lane));
    settle(q, waiting.lane, place, asks ? flows_.siblings.find(q.flow.hash) : std::nullopt);
  }

  void settle(const Question& q, Burst::Lane lane, FlowTable::Place place,
              const std::optional<Siblings::Found>& elsewhere) {
    if (is_about_flow(lane))
      go_to(lane, follow_flow(q, place, elsewhere));
    else if (place == FlowTable::kNowhere)
      go_to(lane, meet_nothing(q, elsewhere));
    else
      go_to(lane, meet_entry(q, place, flows_.table.at(place)));
  }

  void go_to(Burst::Lane lane, BackendNumber backend) {
    burst_.backend[lane] = backend;
    if (backend == kNoBackend) burst_.drop(lane, DropReason::no_backend);
  }

  /// What find() found, if its time is not over.
  [[nodiscard]] FlowTable::Place still_counts(const Question& q, Burst::Lane lane,
                                              FlowTable::Place place) {
    if (place == FlowTable::kNowhere) return place;
    const FlowEntry entry = flows_.table.at(place);
    if (!is_expired(entry.life().state, entry.idle(flows_.now), q.flow.service)) return place;
    // The sweep has not come by yet.
    if (!is_about_flow(lane)) flows_.table.expire(place);
    return FlowTable::kNowhere;
  }

  /// Another worker may know the flow, and the budget allows to look.
  [[nodiscard]] bool may_ask_siblings(const Question& q, Burst::Lane lane) {
    if (!flows_.siblings.any()) return false;
    if (!is_about_flow(lane) && !may_be_elsewhere(q.event)) return false;
    if (flows_.sibling_lookups.take(flows_.clock)) return true;
    flows_.events.sibling_refused.add();
    return false;
  }

  [[nodiscard]] bool is_about_flow(Burst::Lane lane) const {
    const PacketKind kind = burst_.packet[lane].kind;
    return kind == PacketKind::icmp_error || kind == PacketKind::later_fragment;
  }

  /// A VIP is no client, but who forges sources may use one: the backend's answer would then go to
  /// a backend. Asked here and not by parse(), so that packets of known flows do not pay for it.
  [[nodiscard]] bool comes_from_vip(Burst::Lane lane) const {
    const ParsedPacket& packet = burst_.packet[lane];
    // Not the key's client, which an ICMP error only quotes.
    const auto* const ip =
        rte_pktmbuf_mtod_offset(burst_.mbuf[lane], const std::uint8_t*, packet.l3_offset);
    const std::size_t source =
        packet.family == Family::ipv4 ? offsetof(Ipv4Header, source) : offsetof(Ipv6Header, source);
    return now_.service_table.is_vip(packet.family, ip + source);
  }

  /// An ICMP error counts as a packet from the middle of a flow, a later fragment of UDP as what
  /// its first one was.
  [[nodiscard]] static PacketKind kind_of_flow(const ParsedPacket& packet) {
    if (packet.kind != PacketKind::later_fragment) return packet.kind;
    return packet.protocol == IpProtocol::udp ? PacketKind::udp : PacketKind::tcp;
  }

  [[nodiscard]] Question question(Burst::Lane lane) {
    const ParsedPacket& packet = burst_.packet[lane];
    const ServiceNumber number = burst_.service[lane];
    return {.flow = {now_, *now_.service(number), burst_.hash[lane]},
            .number = number,
            .event = event_of(kind_of_flow(packet), packet.tcp_flags, packet.has_payload),
            .flows = flows_};
  }

  Burst& burst_;
  const Snapshot& now_;
  FlowContext& flows_;
  std::array<Waiting, Burst::kCapacity> waiting_;
  unsigned waiting_count_ = 0;
  unsigned hits_ = 0;
};

}  // namespace

void pick_backend(Burst& burst, const Snapshot& now, FlowContext& flows, Instant time) noexcept {
  flows.set_now(time);
  PickBackend(burst, now, flows).run();
}

}  // namespace holdfast

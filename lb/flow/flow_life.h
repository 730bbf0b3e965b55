// SPDX-License-Identifier: Apache-2.0
// A flow's life: what a packet does to an entry, whether the flow stays on its backend, when an
// entry has expired, and which entry has to make room for which. Pure functions over values; the
// tests walk the whole table of (state x event x standing).
//
// The aim: a flow that carries data keeps its place whatever strangers send. So one spoofed packet
// never costs more than it can prove: a SYN never lowers an entry, a spoofed FIN or RST is taken
// back by the next real packet, and a flow must come back in two further periods to be proven.
#pragma once

#include <cstdint>

#include "lb/flow/flow_entry.h"
#include "lib/model/backend.h"
#include "lib/model/service.h"
#include "lib/net/parse.h"

namespace holdfast {

/// Idle this long, an established flow is no longer recent: a SYN may place it anew when its
/// backend takes no new flows, and as long as it is not proven a newcomer may have its place.
inline constexpr FlowTime kRecent = std::chrono::seconds{60};
/// Activity is counted in periods of the flow clock of this length.
inline constexpr FlowTime kPeriod = std::chrono::seconds{10};

/// What kind of packet it is, as far as a flow's life goes.
enum class FlowEvent : std::uint8_t {
  syn,       // SYN, with or without ACK
  fin,       // FIN, whatever else but RST
  rst,       // RST, whatever else
  payload,   // TCP with payload and none of SYN, FIN, RST
  bare,      // TCP without payload and none of SYN, FIN, RST
  datagram,  // UDP
};

/// What a flow's backend means for it.
enum class Standing : std::uint8_t {
  eligible,  // takes new flows
  leaving,   // draining, weight 0, or no longer in the service's pool: placed flows stay
  doubtful,  // down within its grace, not yet checked, no next hop: placed flows stay, but a client
             // that is still connecting is better off elsewhere
  gone,      // removed, or placed flows do not stay any more
};

struct LifeStep {
  bool anew = false;     // pick a backend; the rest is not used
  FlowLife next{};       // the entry's life from now on
  bool refresh = true;   // the packet counts as activity
  bool restart = false;  // a new connection begins on the same entry and backend

  friend constexpr bool operator==(const LifeStep&, const LifeStep&) = default;
};

/// From the lowest to the highest.
enum class FlowRank : std::uint8_t { expired, embryonic, stale, closing, established, proven };

/// Requires: kind is tcp or udp. `tcp_flags` is ignored for udp.
[[nodiscard]] constexpr FlowEvent event_of(PacketKind kind, std::uint8_t tcp_flags,
                                           bool has_payload) {
  if (kind == PacketKind::udp) return FlowEvent::datagram;
  if ((tcp_flags & TcpHeader::kRst) != 0) return FlowEvent::rst;
  if ((tcp_flags & TcpHeader::kFin) != 0) return FlowEvent::fin;
  if ((tcp_flags & TcpHeader::kSyn) != 0) return FlowEvent::syn;
  return has_payload ? FlowEvent::payload : FlowEvent::bare;
}

/// `backend` is null when its number is gone from the snapshot.
[[nodiscard]] constexpr Standing standing_of(const Backend* backend, const Service& service) {
  if (backend == nullptr) return Standing::gone;
  if (backend->state == BackendState::eligible)
    return backend->pool == service.pool ? Standing::eligible : Standing::leaving;
  const bool udp = service.protocol == IpProtocol::udp;
  if (!(udp ? backend->keeps_udp : backend->keeps_tcp)) return Standing::gone;
  switch (backend->state) {
    case BackendState::draining:
      return udp && service.udp_repick_on_drain ? Standing::gone : Standing::leaving;
    case BackendState::weight_zero:
      return Standing::leaving;
    case BackendState::eligible:
    case BackendState::down:
    case BackendState::neigh_unresolved:
    case BackendState::next_hop_lost:
    case BackendState::path_too_small:
    case BackendState::unchecked:
      return Standing::doubtful;
  }
  return Standing::doubtful;
}

/// The period that a time belongs to differs: the packet proves the flow a bit more.
[[nodiscard]] constexpr bool further_period(FlowTime now, FlowTime idle) {
  return now / kPeriod != (now - idle) / kPeriod;
}

/// The connection that the entry is in carried more than its handshake, as far as we saw.
[[nodiscard]] constexpr bool was_established(FlowLife life) {
  switch (life.state) {
    case FlowState::free:
    case FlowState::embryonic:
    case FlowState::closing_embryonic:
      return false;
    case FlowState::established:
    case FlowState::closing_fin:
    case FlowState::closing_rst:
      return true;
  }
  return false;
}

/// A SYN meets an entry (docs/decisions/flow-life.md says why).
[[nodiscard]] constexpr LifeStep meet_syn(FlowLife life, Standing standing, FlowTime idle) {
  constexpr LifeStep kAnew{.anew = true};
  if (standing == Standing::gone) return kAnew;
  switch (life.state) {
    case FlowState::free:
      return kAnew;
    case FlowState::embryonic:  // a retransmit
      if (standing == Standing::doubtful) return kAnew;
      return {.next = life};
    case FlowState::closing_fin:
    case FlowState::closing_rst:
    case FlowState::closing_embryonic:
      if (standing != Standing::eligible) return kAnew;
      // The port is used again, or someone pretends so. Either way the entry keeps its rank, and
      // the first packet behind the handshake makes it established.
      return {.next = {FlowState::closing_embryonic, life.proven}, .restart = true};
    case FlowState::established:
      if (standing == Standing::eligible) return {.next = life};
      if (idle >= kRecent) return kAnew;
      // No refresh: a client that only repeats its SYN is placed anew after kRecent.
      return {.next = life, .refresh = false};
  }
  return kAnew;
}

/// A packet meets an entry that has not expired. `idle`: time since the entry's last packet.
[[nodiscard]] constexpr LifeStep live(FlowLife life, FlowEvent event, Standing standing,
                                      FlowTime now, FlowTime idle) {
  if (event == FlowEvent::syn) return meet_syn(life, standing, idle);
  if (standing == Standing::gone) return {.anew = true};
  switch (event) {
    case FlowEvent::fin:
      return {.next = {FlowState::closing_fin, life.proven}};
    case FlowEvent::rst:
      // A FIN is the stronger word: the ACKs of a half-closed client must not undo it.
      if (life.state == FlowState::closing_fin) return {.next = life};
      if (!was_established(life)) return {.next = {FlowState::closing_embryonic, life.proven}};
      return {.next = {FlowState::closing_rst, life.proven}};
    case FlowEvent::bare:
      if (life.state == FlowState::closing_fin) return {.next = life};
      break;
    case FlowEvent::payload:
    case FlowEvent::datagram:
    case FlowEvent::syn:
      break;
  }
  if (life.state == FlowState::embryonic) return {.next = {FlowState::established, 0}};
  if (life.proven < FlowLife::kProven && further_period(now, idle)) ++life.proven;
  return {.next = {FlowState::established, life.proven}};
}

/// A packet that neither begins nor ends a flow: event_of() would say payload, bare or datagram.
[[nodiscard]] constexpr bool only_continues(PacketKind kind, std::uint8_t tcp_flags) {
  constexpr std::uint8_t kOthers = TcpHeader::kSyn | TcpHeader::kFin | TcpHeader::kRst;
  return (kind == PacketKind::tcp || kind == PacketKind::udp) && (tcp_flags & kOthers) == 0;
}

/// Such a packet leaves the life of a flow whose backend keeps it as it is; only the time of its
/// last packet is new. What live() says of nearly every packet of a stream, found out sooner.
[[nodiscard]] constexpr bool stays_established(FlowLife life, FlowTime now, FlowTime idle) {
  return life.state == FlowState::established &&
         (life.proven >= FlowLife::kProven || !further_period(now, idle));
}

/// How long an entry lives without a packet. A UDP flow has one lifetime: its second packet may
/// come late, and its first is no half-open handshake. A stateless service has no flows: what one
/// left behind from before is over.
[[nodiscard]] constexpr FlowTime lifetime(FlowState state, const Service& service) {
  const FlowTimeouts& timeouts = service.timeouts;
  if (service.protocol == IpProtocol::udp)
    return service.stateless ? std::chrono::seconds{0} : timeouts.udp;
  switch (state) {
    case FlowState::free:
    case FlowState::embryonic:
      return timeouts.embryonic;
    case FlowState::established:
      return timeouts.established;
    case FlowState::closing_fin:
    case FlowState::closing_rst:
    case FlowState::closing_embryonic:
      return timeouts.closing;
  }
  return timeouts.embryonic;
}

[[nodiscard]] constexpr bool is_expired(FlowState state, FlowTime idle, const Service& service) {
  return idle >= lifetime(state, service);
}

[[nodiscard]] constexpr FlowRank rank_of(FlowLife life, FlowTime idle, const Service& service) {
  if (is_expired(life.state, idle, service)) return FlowRank::expired;
  switch (life.state) {
    case FlowState::free:
      return FlowRank::expired;
    case FlowState::embryonic:
      return FlowRank::embryonic;
    case FlowState::closing_fin:
    case FlowState::closing_rst:
    case FlowState::closing_embryonic:
      return FlowRank::closing;
    case FlowState::established:
      if (life.proven >= FlowLife::kProven) return FlowRank::proven;
      return idle >= kRecent ? FlowRank::stale : FlowRank::established;
  }
  return FlowRank::expired;
}

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// Fragments: the first one of a datagram has the ports and tells the others' flow. What waits for
// it is held (lb/fragment/), and comes here again when it is released.
#include <rte_mbuf.h>

#include <cstddef>
#include <cstring>

#include "lb/fragment/fragments.h"
#include "lb/stage/stages.h"
#include "lib/flow/flow_hash.h"

namespace holdfast {

namespace {

/// The datagram that a fragment belongs to, by its own header: source, destination, number, for
/// IPv4 the protocol (RFC 791 3.2, RFC 8200 4.5). Requires: parse() walked its IP header.
FlowHash hash_datagram(const rte_mbuf& mbuf, const ParsedPacket& packet, HashSeed seed) {
  const auto* const ip = rte_pktmbuf_mtod_offset(&mbuf, const std::uint8_t*, packet.l3_offset);
  const auto high = Be16::from_host(static_cast<std::uint16_t>(packet.fragment_id >> 16));
  const auto low = Be16::from_host(static_cast<std::uint16_t>(packet.fragment_id));
  if (packet.family == Family::ipv4) {
    // Not that of the flow: an authentication header may lie before it.
    const auto protocol = static_cast<IpProtocol>(ip[offsetof(Ipv4Header, protocol)]);
    return hash_flow_inline({Family::ipv4, ip + offsetof(Ipv4Header, source),
                             ip + offsetof(Ipv4Header, destination), high, low, protocol},
                            seed);
  }
  return hash_flow_inline({Family::ipv6, ip + offsetof(Ipv6Header, source),
                           ip + offsetof(Ipv6Header, destination), high, low, IpProtocol::fragment},
                          seed);
}

FragmentPiece piece_of(const ParsedPacket& packet) {
  return {.start = packet.fragment_offset,
          .end = static_cast<std::uint16_t>(packet.fragment_offset + packet.fragment_length),
          .last = !packet.more_fragments};
}

/// What a first fragment is dropped for that is true of its whole datagram. Else the others wait in
/// vain for a first one, each taking room for a second.
bool speaks_for_all(DropReason reason) {
  return reason == DropReason::ipv4_fragment_tiny || reason == DropReason::ipv6_fragment_tiny ||
         reason == DropReason::unknown_protocol;
}

/// A later fragment becomes a packet of its flow.
void give_flow(ParsedPacket& packet, const DatagramFlow& flow) {
  // The addresses are the datagram's; its number is where the ports belong.
  const std::uint8_t* const addresses = packet.key.bytes().data();
  const std::size_t width = packet.family == Family::ipv4 ? 4 : 16;
  const FlowKey key(packet.family, addresses, addresses + width, flow.client_port,
                    flow.service_port, flow.protocol);
  packet.key = key;
  packet.protocol = flow.protocol;
  packet.service_port = flow.service_port;
}

/// The port of the client's side.
Be16 client_port(const ParsedPacket& packet) {
  const std::size_t width = packet.family == Family::ipv4 ? 4 : 16;
  Be16 port;
  std::memcpy(&port, packet.key.bytes().data() + 2 * width, sizeof port);
  return port;
}

void follow(Burst& burst, Burst::Lane lane, const FragmentFate& fate) {
  switch (fate.what) {
    case FragmentFate::What::go_on:
      if (burst.packet[lane].kind == PacketKind::later_fragment)
        give_flow(burst.packet[lane], fate.flow);
      return;
    case FragmentFate::What::hold:
      burst.verdict[lane] = Verdict::held();
      return;
    case FragmentFate::What::drop:
      burst.drop(lane, fate.reason);
      return;
  }
}

void join_one(Burst& burst, Burst::Lane lane, const Snapshot& now, Fragments& fragments,
              Instant time) {
  const ParsedPacket& packet = burst.packet[lane];
  const Verdict verdict = burst.verdict[lane];
  const bool refused = verdict.outcome == Outcome::drop && packet.part == FragmentPart::first &&
                       speaks_for_all(verdict.reason);
  if (verdict.decided() && !refused) return;
  if (!now.service_table.is_vip(packet.vip)) {
    burst.verdict[lane] = Verdict::kernel();
    return;
  }
  rte_mbuf* const mbuf = burst.mbuf[lane];
  const Fragments::Fragment fragment{.family = packet.family,
                                     .datagram = hash_datagram(*mbuf, packet, now.seed),
                                     .piece = piece_of(packet),
                                     // Several buffers would count as one.
                                     .may_wait = mbuf->nb_segs == 1};
  if (packet.part == FragmentPart::later)
    return follow(burst, lane, fragments.meet_later(fragment, mbuf, time));
  if (refused) return fragments.refuse(fragment, verdict.reason, time);
  const DatagramFlow flow{.protocol = packet.protocol,
                          .client_port = client_port(packet),
                          .service_port = packet.service_port};
  follow(burst, lane, fragments.meet_first(fragment, flow, time));
}

}  // namespace

void join_fragments(Burst& burst, const Snapshot& now, Fragments& fragments,
                    Instant time) noexcept {
  for (Burst::Lane lane = 0; lane < burst.size; ++lane)
    if (burst.packet[lane].part != FragmentPart::whole) [[unlikely]]
      join_one(burst, lane, now, fragments, time);
}

void join_released(Burst& burst, std::span<const FragmentFate> fates) noexcept {
  burst.for_undecided([&](Burst::Lane lane) { follow(burst, lane, fates[lane]); });
}

}  // namespace holdfast

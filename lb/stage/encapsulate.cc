// SPDX-License-Identifier: Apache-2.0
#include <rte_mbuf.h>

#include <new>

#include "lb/encap/encap.h"
#include "lb/stage/stages.h"

namespace holdfast {

namespace {

/// One of the backend's next hops, the same for all packets of a flow while their number stays.
/// The high bits of the entropy choose: the low ones are the flow label, and routers on the way
/// must not see only labels that this choice has already sorted.
const NextHop& choose_next_hop(const Snapshot& now, const Backend& backend, std::uint32_t entropy) {
  const std::uint64_t index = std::uint64_t{entropy} * backend.next_hop_count >> 32;
  return now.next_hops[backend.first_next_hop + index];
}

std::size_t ethernet_length(const NextHop& hop) {
  return hop.vlan == 0 ? sizeof(EthernetHeader) : sizeof(EthernetHeader) + sizeof(VlanHeader);
}

/// The tag is the next hop's, never the one that came in.
void write_ethernet(std::uint8_t* at, const NextHop& hop, Family outer) {
  const auto ip = outer == Family::ipv4 ? EtherType::ipv4 : EtherType::ipv6;
  const auto wire = [](EtherType type) {
    return Be16::from_host(static_cast<std::uint16_t>(type));
  };
  auto* ethernet = new (at)
      EthernetHeader{.destination = hop.destination, .source = hop.source, .ether_type = wire(ip)};
  if (hop.vlan == 0) return;
  ethernet->ether_type = wire(EtherType::vlan);
  new (at + sizeof(EthernetHeader))
      VlanHeader{.tag_control = Be16::from_host(hop.vlan), .ether_type = wire(ip)};
}

/// Cuts the frame to its IP packet (Ethernet padding behind it would be taken for tunnelled bytes)
/// and opens `before` bytes in front of it. Requires: there is room.
std::uint8_t* reframe(rte_mbuf& mbuf, const ParsedPacket& packet, std::size_t before) {
  mbuf.data_off = static_cast<std::uint16_t>(mbuf.data_off + packet.l3_offset - before);
  mbuf.data_len = static_cast<std::uint16_t>(before + packet.ip_length);
  mbuf.pkt_len = mbuf.data_len;
  // What the NIC said about the frame that came in (stripped tags, checksums) is not true of this.
  mbuf.ol_flags &= RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL;
  return rte_pktmbuf_mtod(&mbuf, std::uint8_t*);
}

Verdict encapsulate_one(Burst& burst, Burst::Lane lane, const Snapshot& now) {
  const ParsedPacket& packet = burst.packet[lane];
  const Backend* backend = now.backend(burst.backend[lane]);
  if (backend == nullptr) return Verdict::dropped(DropReason::no_backend);
  if (backend->next_hop_count == 0) return Verdict::dropped(DropReason::neigh_unresolved);

  const std::uint32_t entropy = flow_entropy(burst.hash[lane]);
  const NextHop& hop = choose_next_hop(now, *backend, entropy);
  const Family outer = backend->address.family();
  const std::size_t overhead = tunnel_overhead(backend->encapsulation, outer);
  if (packet.ip_length + overhead > hop.mtu) return Verdict::dropped(DropReason::too_big);

  rte_mbuf& mbuf = *burst.mbuf[lane];
  const std::size_t before = ethernet_length(hop) + overhead;
  if (std::size_t{mbuf.data_off} + packet.l3_offset < before)
    return Verdict::dropped(DropReason::no_headroom);

  std::uint8_t* frame = reframe(mbuf, packet, before);
  write_ethernet(frame, hop, outer);
  write_tunnel(frame + ethernet_length(hop),
               {.backend = *backend, .packet = packet, .entropy = entropy});
  burst.egress[lane] = hop.port;
  return Verdict::forwarded();
}

}  // namespace

void encapsulate(Burst& burst, const Snapshot& now) noexcept {
  burst.for_undecided(
      [&](Burst::Lane lane) { burst.verdict[lane] = encapsulate_one(burst, lane, now); });
}

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
#include <rte_mbuf.h>

#include <cstring>

#include "lb/encap/encap.h"
#include "lb/stage/clamp_syn.h"
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

constexpr std::uint16_t wire(EtherType type) {
  return Be16::from_host(static_cast<std::uint16_t>(type)).raw();
}

/// The tag is the next hop's, never the one that came in.
template <bool kTagged, Family kOuter>
void write_ethernet(std::uint8_t* at, const NextHop& hop) {
  constexpr std::uint16_t kIp = wire(kOuter == Family::ipv4 ? EtherType::ipv4 : EtherType::ipv6);
  std::memcpy(at, &hop.destination, 6);
  std::memcpy(at + 6, &hop.source, 6);
  if constexpr (kTagged) {
    constexpr std::uint16_t kTag = wire(EtherType::vlan);
    const std::uint16_t control = Be16::from_host(hop.vlan).raw();
    std::memcpy(at + 12, &kTag, 2);
    std::memcpy(at + 14, &control, 2);
    std::memcpy(at + 16, &kIp, 2);
  } else {
    std::memcpy(at + 12, &kIp, 2);
  }
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

struct Outgoing {
  const Backend& backend;
  const NextHop& hop;
  std::uint32_t entropy;
};

/// The lengths of what goes in front are known when this is compiled: nearly all packets of a
/// machine leave in one and the same way.
template <bool kTagged, Family kOuter>
Verdict wrap(rte_mbuf& mbuf, const ParsedPacket& packet, const Outgoing& out) {
  constexpr std::size_t kEthernet = sizeof(EthernetHeader) + (kTagged ? sizeof(VlanHeader) : 0);
  const std::size_t overhead = tunnel_overhead(out.backend.encapsulation, kOuter);
  if (packet.ip_length + overhead > out.hop.mtu) return Verdict::dropped(DropReason::too_big);
  if (std::size_t{mbuf.data_off} + packet.l3_offset < kEthernet + overhead)
    return Verdict::dropped(DropReason::no_headroom);

  std::uint8_t* frame = reframe(mbuf, packet, kEthernet + overhead);
  write_ethernet<kTagged, kOuter>(frame, out.hop);
  write_tunnel<kOuter>(frame + kEthernet,
                       {.backend = out.backend, .packet = packet, .entropy = out.entropy});
  return Verdict::forwarded();
}

Verdict encapsulate_one(Burst& burst, Burst::Lane lane, const Snapshot& now) {
  const Backend* backend = now.backend(burst.backend[lane]);
  if (backend == nullptr) return Verdict::dropped(DropReason::no_backend);
  if (backend->next_hop_count == 0) return Verdict::dropped(DropReason::neigh_unresolved);

  const std::uint32_t entropy = flow_entropy(burst.hash[lane]);
  const Outgoing out{*backend, choose_next_hop(now, *backend, entropy), entropy};
  burst.egress[lane] = out.hop.port;
  rte_mbuf& mbuf = *burst.mbuf[lane];
  const ParsedPacket& packet = burst.packet[lane];
  if ((packet.tcp_flags & TcpHeader::kSyn) != 0)
    clamp_syn(mbuf, packet, *now.service(burst.service[lane]));
  const bool v4 = backend->address.is_v4();
  if (out.hop.vlan == 0)
    return v4 ? wrap<false, Family::ipv4>(mbuf, packet, out)
              : wrap<false, Family::ipv6>(mbuf, packet, out);
  return v4 ? wrap<true, Family::ipv4>(mbuf, packet, out)
            : wrap<true, Family::ipv6>(mbuf, packet, out);
}

}  // namespace

void encapsulate(Burst& burst, const Snapshot& now) noexcept {
  burst.for_undecided(
      [&](Burst::Lane lane) { burst.verdict[lane] = encapsulate_one(burst, lane, now); });
}

}  // namespace holdfast

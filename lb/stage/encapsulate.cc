// SPDX-License-Identifier: Apache-2.0
#include <rte_mbuf.h>

#include <algorithm>
#include <cstring>

#include "lb/encap/encap.h"
#include "lb/segments.h"
#include "lb/stage/clamp_syn.h"
#include "lb/stage/split.h"
#include "lb/stage/stages.h"
#include "lib/net/ip_walk.h"

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
  const std::size_t length = before + packet.ip_length;
  // parse() has left no padding behind a packet in several buffers.
  const bool whole = mbuf.nb_segs == 1;
  mbuf.data_len =
      static_cast<std::uint16_t>(whole ? length : mbuf.data_len - packet.l3_offset + before);
  mbuf.pkt_len = static_cast<std::uint32_t>(length);
  // What the NIC said about the frame that came in (stripped tags, checksums) is not true of this.
  mbuf.ol_flags &= RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL;
  return rte_pktmbuf_mtod(&mbuf, std::uint8_t*);
}

struct Outgoing {
  const Backend& backend;
  const NextHop& hop;
  std::uint32_t entropy;
  const Snapshot& now;
  Burst& burst;
  Burst::Lane lane;
  PacketIo& io;
};

/// By value: what is only looked at in place stays in registers.
Verdict does_not_fit(Outgoing out, std::size_t overhead);

template <bool kTagged>
constexpr std::size_t kEthernet = sizeof(EthernetHeader) + (kTagged ? sizeof(VlanHeader) : 0);

/// Decided: the packet can not be tunnelled in its buffer. `overhead`: tunnel_overhead().
template <bool kTagged>
[[gnu::always_inline]] inline Verdict make_ready(rte_mbuf& mbuf, const ParsedPacket& packet,
                                                 const Outgoing& out, std::size_t overhead) {
  if (packet.ip_length + overhead > out.hop.mtu) [[unlikely]]
    return does_not_fit(out, overhead);
  if (std::size_t{mbuf.data_off} + packet.l3_offset < kEthernet<kTagged> + overhead)
    return Verdict::dropped(DropReason::no_headroom);
  // Not before it is known to leave: an answer quotes the packet as it came.
  if ((packet.tcp_flags & TcpHeader::kSyn) != 0)
    clamp_syn(mbuf, packet, *out.now.service(out.burst.service[out.lane]));
  return {};
}

/// The lengths of what goes in front are known when this is compiled: nearly all packets of a
/// machine leave in one and the same way.
template <bool kTagged, Family kOuter, Encapsulation kHow>
[[gnu::always_inline]] inline void put_in_front(rte_mbuf& mbuf, const ParsedPacket& packet,
                                                const Backend& backend, const NextHop& hop,
                                                std::uint32_t entropy) {
  constexpr std::size_t kBefore = kEthernet<kTagged> + tunnel_overhead(kHow, kOuter);
  std::uint8_t* frame = reframe(mbuf, packet, kBefore);
  write_ethernet<kTagged, kOuter>(frame, hop);
  write_tunnel<kOuter, kHow>(frame + kEthernet<kTagged>, {.backend = backend,
                                                          .packet = packet,
                                                          .entropy = entropy,
                                                          .mbuf = mbuf,
                                                          .port_sums_udp = hop.sums_udp});
}

/// Not inlined, so that IPIP keeps its registers; all that it needs comes in registers, too.
template <bool kTagged, Family kOuter>
[[gnu::noinline]] void put_other_in_front(rte_mbuf& mbuf, const ParsedPacket& packet,
                                          const Backend& backend, const NextHop& hop,
                                          std::uint32_t entropy) {
  with_encapsulation(backend.encapsulation, [&](auto how) {
    put_in_front<kTagged, kOuter, how()>(mbuf, packet, backend, hop, entropy);
  });
}

/// One branch, which is nearly always taken the same way.
template <bool kTagged, Family kOuter>
[[gnu::always_inline]] inline Verdict wrap(rte_mbuf& mbuf, const ParsedPacket& packet,
                                           const Outgoing& out) {
  constexpr auto kIpip = Encapsulation::ipip;
  const Encapsulation how = out.backend.encapsulation;
  if (how == kIpip) [[likely]] {
    const Verdict verdict = make_ready<kTagged>(mbuf, packet, out, tunnel_overhead(kIpip, kOuter));
    if (verdict.decided()) return verdict;
    put_in_front<kTagged, kOuter, kIpip>(mbuf, packet, out.backend, out.hop, out.entropy);
  } else {
    const Verdict verdict = make_ready<kTagged>(mbuf, packet, out, tunnel_overhead(how, kOuter));
    if (verdict.decided()) return verdict;
    put_other_in_front<kTagged, kOuter>(mbuf, packet, out.backend, out.hop, out.entropy);
  }
  return Verdict::forwarded();
}

[[gnu::always_inline]] inline Verdict tunnel(rte_mbuf& mbuf, const ParsedPacket& packet,
                                             const Outgoing& out) {
  const bool v4 = out.backend.address.is_v4();
  if (out.hop.vlan == 0)
    return v4 ? wrap<false, Family::ipv4>(mbuf, packet, out)
              : wrap<false, Family::ipv6>(mbuf, packet, out);
  return v4 ? wrap<true, Family::ipv4>(mbuf, packet, out)
            : wrap<true, Family::ipv6>(mbuf, packet, out);
}

/// The same, not inlined.
[[gnu::noinline]] Verdict tunnel_piece(rte_mbuf& mbuf, const ParsedPacket& packet,
                                       const Outgoing& out) {
  return tunnel(mbuf, packet, out);
}

/// `room`: the longest IP packet that the tunnel takes, in bytes.
Verdict say_too_big(const Outgoing& out, std::size_t room) {
  // What every path has to carry (RFC 8200 5, RFC 791 3.2): nobody sends less for being told to.
  const ParsedPacket& packet = out.burst.packet[out.lane];
  const std::size_t least = packet.family == Family::ipv4 ? 68 : 1280;
  if (packet.ip_length <= least) return Verdict::dropped(DropReason::too_big);
  out.burst.answer_with(out.lane, {.kind = AnswerKind::too_big,
                                   .mtu = static_cast<std::uint16_t>(std::max(room, least))});
  return out.burst.verdict[out.lane];
}

Verdict tunnel_in_fragments(const Outgoing& out, std::size_t room) {
  Burst& burst = out.burst;
  const unsigned first_extra = burst.extra_size;
  if (const Verdict failed = split_packet(burst, out.lane, room, out.io); failed.decided())
    return failed;
  ParsedPacket piece = burst.packet[out.lane];
  if (piece.part == FragmentPart::whole) piece.part = FragmentPart::first;
  rte_mbuf& first = *burst.mbuf[out.lane];
  const auto* const ip = rte_pktmbuf_mtod(&first, const std::uint8_t*) + piece.l3_offset;
  piece.ip_length = overlay<Ipv4Header>(ip).total_length.host();
  if (first.nb_segs != 1) cut_to(first, std::uint32_t{piece.l3_offset} + piece.ip_length, out.io);
  Verdict verdict = tunnel_piece(first, piece, out);

  piece.part = FragmentPart::later;
  piece.tcp_flags = 0;
  piece.l3_offset = 0;
  for (unsigned i = first_extra; i < burst.extra_size && verdict == Verdict::forwarded(); ++i) {
    rte_mbuf& mbuf = *burst.extra[i].mbuf;
    piece.ip_length = mbuf.data_len;
    piece.l4_offset = static_cast<std::uint16_t>(
        overlay<Ipv4Header>(rte_pktmbuf_mtod(&mbuf, const std::uint8_t*)).header_length());
    verdict = tunnel_piece(mbuf, piece, out);
  }
  if (verdict != Verdict::forwarded()) drop_extra(burst, first_extra, out.io);
  return verdict;
}

/// Not inlined: the way of nearly all packets must not pay for it.
[[gnu::noinline]] Verdict does_not_fit(Outgoing out, std::size_t overhead) {
  const std::size_t room = out.hop.mtu > overhead ? out.hop.mtu - overhead : 0;
  // All of IPv6 is: routers fragment none of it.
  if (out.burst.packet[out.lane].dont_fragment) return say_too_big(out, room);
  return tunnel_in_fragments(out, room);
}

Verdict encapsulate_one(Burst& burst, Burst::Lane lane, const Snapshot& now, PacketIo& io) {
  const Backend* backend = now.backend(burst.backend[lane]);
  if (backend == nullptr) return Verdict::dropped(DropReason::no_backend);
  if (backend->next_hop_count == 0) return Verdict::dropped(DropReason::neigh_unresolved);

  const std::uint32_t entropy = flow_entropy(burst.hash[lane]);
  const Outgoing out{.backend = *backend,
                     .hop = choose_next_hop(now, *backend, entropy),
                     .entropy = entropy,
                     .now = now,
                     .burst = burst,
                     .lane = lane,
                     .io = io};
  burst.egress[lane] = out.hop.port;
  return tunnel(*burst.mbuf[lane], burst.packet[lane], out);
}

}  // namespace

void encapsulate(Burst& burst, const Snapshot& now, PacketIo& io) noexcept {
  burst.for_undecided(
      [&](Burst::Lane lane) { burst.verdict[lane] = encapsulate_one(burst, lane, now, io); });
}

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
#include <rte_mbuf.h>

#include "lb/packet_io.h"
#include "lb/segments.h"
#include "lb/stage/stages.h"
#include "lib/net/parse_plain.h"

namespace holdfast {

namespace {

/// How far ahead of the packet in hand the next ones' headers are fetched.
constexpr unsigned kPrefetchAhead = 4;

/// VLAN tags that the NIC took out of the bytes and put into the mbuf.
unsigned stripped_tags(const rte_mbuf& mbuf) {
  if ((mbuf.ol_flags & RTE_MBUF_F_RX_QINQ_STRIPPED) != 0) return 2;
  return (mbuf.ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) != 0 ? 1 : 0;
}

unsigned tags_in_bytes(const ParsedPacket& packet) {
  return (packet.l3_offset - unsigned{sizeof(EthernetHeader)}) / unsigned{sizeof(VlanHeader)};
}

bool checksum_flagged_bad(const rte_mbuf& mbuf) {
  return (mbuf.ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK) == RTE_MBUF_F_RX_IP_CKSUM_BAD;
}

std::span<const std::uint8_t> bytes_of(const rte_mbuf& mbuf) {
  return {rte_pktmbuf_mtod(&mbuf, const std::uint8_t*), mbuf.data_len};
}

/// `whole_head`: what may be a header is in the first buffer. If it is not, only the destination
/// can be believed.
Verdict parse_one(const rte_mbuf& mbuf, bool whole_head, ParsedPacket& packet,
                  const Snapshot& now) {
  auto [verdict, vip_known] = parse_packet(bytes_of(mbuf), mbuf.pkt_len, packet);
  if (verdict == Verdict::kernel()) return verdict;
  if (!whole_head)
    verdict = Verdict::dropped(DropReason::multi_segment);
  else if (!verdict.decided() && packet.family == Family::ipv4 && checksum_flagged_bad(mbuf))
    verdict = Verdict::dropped(DropReason::ipv4_bad_checksum);

  if (vip_known && stripped_tags(mbuf) + tags_in_bytes(packet) > 2) return Verdict::kernel();
  // Whether a faulty packet is to be dropped is ours to say only when it is for a VIP.
  if (verdict.decided() && vip_known && !now.service_table.is_vip(packet.vip))
    return Verdict::kernel();
  return verdict;
}

/// A packet in several buffers: jumbo frames, and what odd drivers split.
Verdict parse_chain(rte_mbuf& mbuf, ParsedPacket& packet, const Snapshot& now, PacketIo& io) {
  const bool whole_head = gather_head(mbuf, io);
  const Verdict verdict = parse_one(mbuf, whole_head, packet, now);
  if (verdict.decided() || mbuf.nb_segs == 1) return verdict;
  // Padding would be a nuisance later on. What is for the kernel stays as it came.
  const std::uint32_t end = std::uint32_t{packet.l3_offset} + packet.ip_length;
  if (end < mbuf.pkt_len && now.service_table.is_vip(packet.vip)) cut_to(mbuf, end, io);
  return verdict;
}

/// Not inlined, as all that few packets need.
[[gnu::noinline]] Verdict parse_any(rte_mbuf& mbuf, ParsedPacket& packet, const Snapshot& now,
                                    PacketIo& io) {
  return mbuf.nb_segs == 1 ? parse_one(mbuf, true, packet, now)
                           : parse_chain(mbuf, packet, now, io);
}

/// A whole frame in one buffer, of which the NIC has nothing to say.
bool is_ordinary(const rte_mbuf& mbuf) {
  constexpr std::uint64_t kRemarks =
      RTE_MBUF_F_RX_QINQ_STRIPPED | RTE_MBUF_F_RX_VLAN_STRIPPED | RTE_MBUF_F_RX_IP_CKSUM_BAD;
  return mbuf.nb_segs == 1 && (mbuf.ol_flags & kRemarks) == 0;
}

}  // namespace

void parse(Burst& burst, const Snapshot& now, PacketIo& io) noexcept {
  burst.has_fragments = false;
  for (Burst::Lane lane = 0; lane < burst.size; ++lane) {
    if (lane + kPrefetchAhead < burst.size)
      __builtin_prefetch(rte_pktmbuf_mtod(burst.mbuf[lane + kPrefetchAhead], const void*));
    rte_mbuf& mbuf = *burst.mbuf[lane];
    if (is_ordinary(mbuf) && parse_plain(bytes_of(mbuf), burst.packet[lane])) [[likely]] {
      burst.verdict[lane] = {};
    } else {
      burst.verdict[lane] = parse_any(mbuf, burst.packet[lane], now, io);
      burst.has_fragments |= burst.packet[lane].part != FragmentPart::whole;
    }
  }
}

}  // namespace holdfast

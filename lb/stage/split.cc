// SPDX-License-Identifier: Apache-2.0
#include "lb/stage/split.h"

#include <rte_mbuf.h>

#include <algorithm>
#include <cstring>

#include "lb/packet_io.h"
#include "lib/net/checksum.h"
#include "lib/net/ip_walk.h"
#include "lib/net/ipv4_fragmenter.h"

namespace holdfast {

namespace {

/// What a buffer of any port holds behind its headroom (DPDK's own default).
constexpr std::size_t kPieceRoom = RTE_MBUF_DEFAULT_DATAROOM;

/// Fragment `index` in a new buffer. `payload`: where the packet's begins in its buffer. Null:
/// there is no buffer.
rte_mbuf* make_piece(const rte_mbuf& packet, std::size_t payload, const Ipv4Fragmenter& fragmenter,
                     unsigned index, PacketIo& io) {
  rte_mbuf* piece = io.allocate();
  if (piece == nullptr) return nullptr;
  const std::size_t header = fragmenter.header_length(index);
  const auto part = fragmenter.part(index);
  if (rte_pktmbuf_tailroom(piece) < header + part.length) {
    io.free({&piece, 1});
    return nullptr;
  }
  auto* const to = rte_pktmbuf_mtod(piece, std::uint8_t*);
  fragmenter.write_header(index, to);
  const void* const from =
      rte_pktmbuf_read(&packet, static_cast<std::uint32_t>(payload + part.offset),
                       static_cast<std::uint32_t>(part.length), to + header);
  if (from != to + header) std::memcpy(to + header, from, part.length);
  piece->data_len = static_cast<std::uint16_t>(header + part.length);
  piece->pkt_len = piece->data_len;
  return piece;
}

}  // namespace

Verdict split_packet(Burst& burst, Burst::Lane lane, std::size_t room, PacketIo& io) {
  rte_mbuf& mbuf = *burst.mbuf[lane];
  const std::size_t l3 = burst.packet[lane].l3_offset;
  std::uint8_t* const ip = rte_pktmbuf_mtod(&mbuf, std::uint8_t*) + l3;
  const std::size_t header = overlay<Ipv4Header>(ip).header_length();
  // Each fragment gets a checksum of its own, which must not make a damaged header good.
  if (checksum_fold(checksum_add({ip, header})) != 0xffff)
    return Verdict::dropped(DropReason::ipv4_bad_checksum);
  const Ipv4Fragmenter fragmenter(ip, {.first = room, .later = std::min(room, kPieceRoom)});
  if (fragmenter.count() == 0) return Verdict::dropped(DropReason::too_big);
  const unsigned before = burst.extra_size;
  if (before + fragmenter.count() - 1 > Burst::kMaxExtra)
    return Verdict::dropped(DropReason::no_buffers);
  for (unsigned i = 1; i < fragmenter.count(); ++i) {
    rte_mbuf* const piece = make_piece(mbuf, l3 + header, fragmenter, i, io);
    if (piece == nullptr) {
      drop_extra(burst, before, io);
      return Verdict::dropped(DropReason::no_buffers);
    }
    burst.extra[burst.extra_size++] = {piece, lane};
  }
  fragmenter.write_header(0, ip);
  return {};
}

void drop_extra(Burst& burst, unsigned from, PacketIo& io) {
  for (unsigned i = from; i < burst.extra_size; ++i) io.free({&burst.extra[i].mbuf, 1});
  burst.extra_size = from;
}

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
#include "lb/segments.h"

#include <algorithm>
#include <cstring>

namespace holdfast {

namespace {

/// Gives back the buffers from `first` on, which no packet has any more: they are one of their own.
void give_back(rte_mbuf* first, std::uint16_t count, PacketIo& io) noexcept {
  first->nb_segs = count;
  first->pkt_len = 0;
  for (const rte_mbuf* at = first; at != nullptr; at = at->next) first->pkt_len += at->data_len;
  io.free({&first, 1});
}

void give_back_second(rte_mbuf& packet, PacketIo& io) noexcept {
  rte_mbuf* const second = packet.next;
  packet.next = second->next;
  --packet.nb_segs;
  second->next = nullptr;
  give_back(second, 1, io);
}

}  // namespace

bool gather_head(rte_mbuf& packet, PacketIo& io) noexcept {
  const std::size_t behind = packet.pkt_len - packet.data_len;
  const bool ours = RTE_MBUF_DIRECT(&packet) && rte_mbuf_refcnt_read(&packet) == 1;
  const std::size_t room = ours ? rte_pktmbuf_tailroom(&packet) : 0;
  const std::size_t lacking = kHead - std::min<std::size_t>(kHead, packet.data_len);
  std::size_t wanted = behind <= room ? behind : std::min(lacking, behind);
  if (wanted > room) return false;

  auto* to = rte_pktmbuf_mtod_offset(&packet, std::uint8_t*, packet.data_len);
  while (packet.next != nullptr && (wanted > 0 || packet.next->data_len == 0)) {
    rte_mbuf& second = *packet.next;
    const auto part = static_cast<std::uint16_t>(std::min<std::size_t>(wanted, second.data_len));
    if (part != 0) std::memcpy(to, rte_pktmbuf_mtod(&second, const void*), part);
    to += part;
    wanted -= part;
    packet.data_len = static_cast<std::uint16_t>(packet.data_len + part);
    second.data_off = static_cast<std::uint16_t>(second.data_off + part);
    second.data_len = static_cast<std::uint16_t>(second.data_len - part);
    // Drivers need not know what to do with an empty buffer.
    if (second.data_len == 0) give_back_second(packet, io);
  }
  return true;
}

void cut_to(rte_mbuf& packet, std::uint32_t length, PacketIo& io) noexcept {
  rte_mbuf* last = &packet;
  std::uint16_t kept = 1;
  std::uint32_t left = length;
  for (; left > last->data_len; ++kept) {
    left -= last->data_len;
    last = last->next;
  }
  last->data_len = static_cast<std::uint16_t>(left);
  packet.pkt_len = length;
  rte_mbuf* const rest = last->next;
  if (rest == nullptr) return;
  const auto cut_off = static_cast<std::uint16_t>(packet.nb_segs - kept);
  last->next = nullptr;
  packet.nb_segs = kept;
  give_back(rest, cut_off, io);
}

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// Heap mbufs: what the stages need of a packet buffer, without EAL and without a mempool, for
// tests, fuzzing and replay. The data ends with its buffer unless tailroom is asked for, so that
// the address sanitizer sees a read past the end of a packet.
#pragma once

#include <rte_mbuf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace holdfast {

struct MbufShape {
  std::uint16_t headroom = RTE_PKTMBUF_HEADROOM;
  std::uint16_t tailroom = 0;
  std::uint64_t ol_flags = 0;             // what the NIC says: RTE_MBUF_F_RX_...
  std::uint16_t vlan_tci = 0;             // a tag that the NIC stripped
  std::uint16_t port = 0;                 // that it comes in by
  std::size_t first_segment = SIZE_MAX;   // bytes in the first buffer
  std::size_t other_segments = SIZE_MAX;  // and in each of the others, which have no other room
};

[[nodiscard]] inline rte_mbuf* make_segment(std::span<const std::uint8_t> bytes,
                                            const MbufShape& shape) {
  const std::size_t room = shape.headroom + bytes.size() + shape.tailroom;
  auto* mbuf = new rte_mbuf{};
  mbuf->buf_addr = new std::uint8_t[room];
  mbuf->buf_len = static_cast<std::uint16_t>(room);
  mbuf->data_off = shape.headroom;
  mbuf->data_len = static_cast<std::uint16_t>(bytes.size());
  mbuf->pkt_len = mbuf->data_len;
  mbuf->nb_segs = 1;
  mbuf->refcnt = 1;
  mbuf->ol_flags = shape.ol_flags;
  mbuf->vlan_tci = shape.vlan_tci;
  mbuf->port = shape.port;
  if (!bytes.empty()) std::memcpy(rte_pktmbuf_mtod(mbuf, void*), bytes.data(), bytes.size());
  return mbuf;
}

/// As `shape` says; in more buffers where one would be longer than its 16 bits of length can tell.
[[nodiscard]] inline rte_mbuf* make_mbuf(std::span<const std::uint8_t> bytes,
                                         const MbufShape& shape = {}) {
  const std::size_t most = std::size_t{UINT16_MAX} - shape.headroom - shape.tailroom;
  const std::size_t in_first = std::min({bytes.size(), shape.first_segment, most});
  rte_mbuf* const first = make_segment(bytes.first(in_first), shape);
  rte_mbuf* last = first;
  for (auto rest = bytes.subspan(in_first); !rest.empty(); rest = rest.subspan(last->data_len)) {
    last->next = make_segment(rest.first(std::min({rest.size(), shape.other_segments, most})),
                              {.headroom = 0});
    last = last->next;
    first->pkt_len += last->data_len;
    ++first->nb_segs;
  }
  return first;
}

inline void free_mbuf(rte_mbuf* mbuf) {
  while (mbuf != nullptr) {
    rte_mbuf* next = mbuf->next;
    delete[] static_cast<std::uint8_t*>(mbuf->buf_addr);
    delete mbuf;
    mbuf = next;
  }
}

/// All bytes of a packet, over all of its segments.
[[nodiscard]] inline std::vector<std::uint8_t> bytes_of(const rte_mbuf& mbuf) {
  std::vector<std::uint8_t> bytes;
  for (const rte_mbuf* segment = &mbuf; segment != nullptr; segment = segment->next) {
    const auto* data = rte_pktmbuf_mtod(segment, const std::uint8_t*);
    bytes.insert(bytes.end(), data, data + segment->data_len);
  }
  return bytes;
}

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
#include "lb/stage/clamp_syn.h"

#include <algorithm>
#include <span>

#include "lib/net/mss.h"

namespace holdfast {

void clamp_syn(rte_mbuf& mbuf, const ParsedPacket& packet, const Service& service) noexcept {
  if (service.mss_clamp == 0 || packet.authenticated) return;
  // Padding behind the IP packet is none of its bytes; further segments of the buffer can not hold
  // options, which stand within 60 bytes of the header's start.
  const std::size_t end =
      std::min<std::size_t>(mbuf.data_len, std::size_t{packet.l3_offset} + packet.ip_length);
  if (end <= packet.l4_offset) return;
  std::uint8_t* const tcp = rte_pktmbuf_mtod_offset(&mbuf, std::uint8_t*, packet.l4_offset);
  static_cast<void>(clamp_mss(std::span(tcp, end - packet.l4_offset), service.mss_clamp));
}

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// What a VIP says itself. The answer is written over the packet that asks for it, and goes back the
// way that one came: by the same port, to the MAC address that sent it, with the same tags. No
// route is asked: whoever brought the packet can bring the answer.
#include <rte_mbuf.h>

#include <array>
#include <cstring>

#include "lb/answer_rates.h"
#include "lb/packet_io.h"
#include "lb/segments.h"
#include "lb/stage/stages.h"
#include "lib/net/reply.h"

namespace holdfast {

namespace {

/// What stands in front of an answer's IP header: Ethernet and up to two tags.
class Front {
 public:
  /// Of a received frame, turned around; with the tags that the NIC took out of its bytes.
  Front(const rte_mbuf& mbuf, const ParsedPacket& packet) {
    const auto* frame = rte_pktmbuf_mtod(&mbuf, const std::uint8_t*);
    add(frame + offsetof(EthernetHeader, source), sizeof(MacAddress));
    add(frame + offsetof(EthernetHeader, destination), sizeof(MacAddress));
    const bool two = (mbuf.ol_flags & RTE_MBUF_F_RX_QINQ_STRIPPED) != 0;
    if (two) add_tag(EtherType::service_vlan, mbuf.vlan_tci_outer);
    if (two || (mbuf.ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) != 0)
      add_tag(EtherType::vlan, mbuf.vlan_tci);
    add(frame + offsetof(EthernetHeader, ether_type),
        packet.l3_offset - offsetof(EthernetHeader, ether_type));
  }
  [[nodiscard]] std::size_t size() const { return size_; }
  void write(std::uint8_t* at) const { std::memcpy(at, bytes_.data(), size_); }

 private:
  void add(const void* from, std::size_t size) {
    std::memcpy(bytes_.data() + size_, from, size);
    size_ += size;
  }
  void add_tag(EtherType type, std::uint16_t control) {
    const std::array words{Be16::from_host(static_cast<std::uint16_t>(type)),
                           Be16::from_host(control)};
    add(words.data(), sizeof words);
  }

  /// Two tags in all (stages before this one see to that), and room for two more.
  std::array<std::uint8_t, sizeof(EthernetHeader) + 4 * sizeof(VlanHeader)> bytes_;
  std::size_t size_ = 0;
};

bool is_group(const MacAddress& address) { return (address.bytes[0] & 1) != 0; }

Sender sender_of(const rte_mbuf& mbuf, const Received& received, const Snapshot& now) {
  const auto& ethernet = *rte_pktmbuf_mtod(&mbuf, const EthernetHeader*);
  return {.to_group = is_group(ethernet.destination) || is_group(ethernet.source),
          .is_vip = now.service_table.is_vip(source_of(received))};
}

/// What begins at `at` in the first buffer is the packet now, `length` bytes of it.
void take_over(rte_mbuf& mbuf, const std::uint8_t* at, std::uint32_t length, PacketIo& io) {
  const auto moved = mbuf.data_off - (at - static_cast<const std::uint8_t*>(mbuf.buf_addr));
  mbuf.data_off = static_cast<std::uint16_t>(mbuf.data_off - moved);
  if (mbuf.nb_segs == 1) {
    mbuf.data_len = static_cast<std::uint16_t>(length);
    mbuf.pkt_len = length;
  } else {
    mbuf.data_len = static_cast<std::uint16_t>(mbuf.data_len + moved);
    mbuf.pkt_len = static_cast<std::uint32_t>(mbuf.pkt_len + moved);
    cut_to(mbuf, length, io);
  }
}

Verdict answer_one(Burst& burst, Burst::Lane lane, const Snapshot& now, AnswerRates& rates,
                   PacketIo& io, Instant time) {
  rte_mbuf& mbuf = *burst.mbuf[lane];
  const ParsedPacket& packet = burst.packet[lane];
  const Received received{.ip = rte_pktmbuf_mtod(&mbuf, std::uint8_t*) + packet.l3_offset,
                          .available = std::size_t{mbuf.data_len} - packet.l3_offset,
                          .packet = packet};
  const Answer answer = burst.answer[lane];
  if (!may_answer(answer.kind, received, sender_of(mbuf, received, now)))
    return Verdict::dropped(DropReason::answer_forbidden);
  const Front front(mbuf, packet);
  if (std::size_t{mbuf.data_off} + packet.l3_offset < kReplyRoom + front.size())
    return Verdict::dropped(DropReason::no_headroom);
  if (!rates.take(answer.kind, time)) return Verdict::dropped(DropReason::answer_rate_limited);

  const Reply reply = write_reply(answer, received);
  std::uint8_t* const frame = reply.ip - front.size();
  front.write(frame);
  take_over(mbuf, frame, static_cast<std::uint32_t>(front.size() + reply.length), io);
  mbuf.ol_flags &= RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL;
  burst.egress[lane] = io.came_from(mbuf);
  return Verdict::answered();
}

}  // namespace

void answer(Burst& burst, const Snapshot& now, AnswerRates& rates, PacketIo& io,
            Instant time) noexcept {
  if (burst.answer_count == 0) return;
  for (Burst::Lane lane = 0; lane < burst.size; ++lane)
    if (burst.verdict[lane].outcome == Outcome::answer)
      burst.verdict[lane] = answer_one(burst, lane, now, rates, io, time);
}

}  // namespace holdfast

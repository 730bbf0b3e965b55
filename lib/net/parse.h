// SPDX-License-Identifier: Apache-2.0
// From the bytes of a frame to the flow that it belongs to: one walk, every read bounded, no copy
// of the payload. Pure; any thread; never throws.
#pragma once

#include <cstdint>
#include <span>

#include "lib/flow/flow_key.h"
#include "lib/model/verdict.h"
#include "lib/net/fragment_part.h"
#include "lib/net/headers.h"

namespace holdfast {

enum class PacketKind : std::uint8_t {
  tcp,
  udp,
  icmp_error,      // carries a quote of a packet that a backend sent; belongs to the quoted flow
  echo_request,    // asks the VIP itself; names no flow
  later_fragment,  // not the first: its flow is known only with the first one's ports
};

/// What later stages need, so that no header is looked at twice. Offsets are bytes from the start
/// of the frame.
struct alignas(8) ParsedPacket {
  PacketKind kind = PacketKind::tcp;
  Family family = Family::ipv4;
  std::uint8_t tcp_flags = 0;      // TcpHeader::k...; of the packet itself, 0 for other kinds
  std::uint8_t traffic_class = 0;  // DSCP and ECN of the packet as received
  bool has_payload = false;        // bytes behind the TCP or UDP header
  bool dont_fragment = false;      // IPv4 DF; always true for IPv6
  FragmentPart part = FragmentPart::whole;
  bool authenticated = false;  // behind an authentication header: nothing may be changed
  std::uint16_t l3_offset = 0;
  std::uint16_t l4_offset = 0;
  std::uint16_t ip_length = 0;  // IP header and payload; what lies behind is Ethernet padding
  IpProtocol protocol = IpProtocol::tcp;  // of the flow: tcp or udp, also for icmp_error
  Be16 service_port{};                    // of the flow: the VIP's side
  IpAddress vip{};                        // the packet's own destination
  FlowKey key{};                          // client -> VIP; for icmp_error the quote, turned around

  // Of fragments only, else not filled in.
  bool more_fragments = false;
  std::uint16_t fragment_offset = 0;  // bytes from the start of the datagram's fragmentable part
  std::uint16_t fragment_length = 0;  // bytes of that part in this packet
  std::uint32_t fragment_id = 0;      // IPv4: 16 bits
};

/// Reads `frame` (from the Ethernet header on). `frame_length`: of the whole frame, when it goes on
/// in other buffers. Lengths are judged by it, headers are read in `frame` alone: with 1.5 kB of
/// them there, only absurd chains of headers are refused for that. Undecided: `packet` is filled
/// and names a flow. Otherwise the verdict is final: drop with its reason, or to_kernel for what is
/// not IP, or has more than two VLAN tags. Whether the destination is a VIP is the caller's
/// question: it is filled in `packet.vip` as soon as it is known, also for drops (`vip_known`), so
/// that what is not for a VIP can go to the kernel instead of being dropped.
struct ParseResult {
  Verdict verdict{};
  bool vip_known = false;
};
[[nodiscard]] ParseResult parse_packet(std::span<const std::uint8_t> frame,
                                       std::size_t frame_length, ParsedPacket& packet);
[[nodiscard]] inline ParseResult parse_packet(std::span<const std::uint8_t> frame,
                                              ParsedPacket& packet) {
  return parse_packet(frame, frame.size(), packet);
}

}  // namespace holdfast

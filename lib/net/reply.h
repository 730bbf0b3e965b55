// SPDX-License-Identifier: Apache-2.0
// What a VIP says back to the sender of a packet: ICMP errors (RFC 792, 1191, 4443), echo replies
// and TCP resets (RFC 9293), each with a fresh IP header from the VIP. Written where the received
// packet lies, over it and a little in front of it. Pure; any thread; never throws.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/model/answer.h"
#include "lib/net/parse.h"

namespace holdfast {

/// A packet to a VIP that is to be answered.
struct Received {
  std::uint8_t* ip;       // its IP header
  std::size_t available;  // bytes from there on that lie in a row: all headers, and maybe more
  const ParsedPacket& packet;
};

[[nodiscard]] IpAddress source_of(const Received& received);

/// Bytes in front of the received IP header that an answer may need.
inline constexpr std::size_t kReplyRoom = sizeof(Ipv6Header) + sizeof(IcmpHeader);

/// The longest ICMP errors, IP header included: RFC 1812 4.3.2.3 and RFC 4443 2.4 c.
inline constexpr std::size_t kMaxIcmpError = 576;
inline constexpr std::size_t kMaxIcmpv6Error = 1280;

/// What is known of a packet outside of its IP bytes.
struct Sender {
  bool to_group = false;  // the frame went to a broadcast or multicast MAC address, or is from one
  bool is_vip = false;    // its source is one of our VIPs
};

/// Whether such an answer is allowed (RFC 1122 3.2.2, RFC 1812 4.3.2.7, RFC 4443 2.4 e, RFC 9293
/// 3.10.7.1): never about an ICMP error, a later IPv4 fragment, a damaged IPv4 header, to who is
/// not one host, or to a reset; nor where the answer could not say what it has to.
[[nodiscard]] bool may_answer(AnswerKind kind, const Received& received, Sender sender);

/// The answer's IP packet.
struct Reply {
  std::uint8_t* ip;
  std::uint16_t length;
};
/// Requires: may_answer(); kReplyRoom bytes in front of received.ip that may be written.
[[nodiscard]] Reply write_reply(Answer answer, const Received& received);

}  // namespace holdfast

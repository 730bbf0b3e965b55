// SPDX-License-Identifier: Apache-2.0
// What the load balancer itself answers to a packet for a VIP. Values.
#pragma once

#include <cstdint>

namespace holdfast {

enum class AnswerKind : std::uint8_t {
  echo_reply,        // RFC 792, RFC 4443 4.2
  too_big,           // fragmentation needed (RFC 1191), Packet Too Big (RFC 4443 3.2)
  reset,             // RFC 9293 3.10.7.1
  port_unreachable,  // RFC 792, RFC 4443 3.1
};

struct Answer {
  AnswerKind kind{};
  std::uint16_t mtu = 0;  // of too_big: the longest IP packet that fits, bytes
};

}  // namespace holdfast

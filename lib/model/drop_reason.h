// SPDX-License-Identifier: Apache-2.0
// The one list of reasons for which a packet is dropped. Code, CLI, JSON and docs are fed from it:
// a new reason is one line here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace holdfast {

// name, sentence for operators
#define HOLDFAST_DROP_REASONS(X)                                                                  \
  X(l2_truncated, "the frame ends inside its Ethernet or VLAN header")                            \
  X(ipv4_truncated, "the frame ends inside the IPv4 header")                                      \
  X(ipv4_bad_version, "the EtherType says IPv4, the version field does not")                      \
  X(ipv4_bad_header_length, "the IPv4 header length is below 20 or beyond the packet")            \
  X(ipv4_bad_total_length,                                                                        \
    "the IPv4 total length does not fit the frame, the header or the fragment")                   \
  X(ipv4_bad_checksum, "a wrong IPv4 header checksum, as the NIC says or found when fragmenting") \
  X(ipv4_source_is_destination, "IPv4 from the VIP to itself (a land attack)")                    \
  X(ipv4_source_is_vip,                                                                           \
    "IPv4 from one VIP to another, without a flow: forged, or a backend's loop")                  \
  X(ipv4_source_multicast, "IPv4 from a multicast address")                                       \
  X(ipv4_source_loopback, "IPv4 from 127.0.0.0/8")                                                \
  X(ipv4_martian, "an IPv4 source that no client may have: 0.0.0.0/8, 240.0.0.0/4")               \
  X(ipv4_fragment_tiny,                                                                           \
    "an IPv4 fragment cut inside its TCP or UDP header: it hides from filters")                   \
  X(ipv4_fragment_overlap, "an IPv4 fragment that overlaps or repeats another of its datagram")   \
  X(ipv4_fragment_too_many, "a datagram of more than 16 IPv4 fragments")                          \
  X(ipv4_fragment_no_first, "an IPv4 fragment whose first one did not come within a second")      \
  X(ipv4_fragment_no_room, "an IPv4 fragment before its first one, and no room to hold it")       \
  X(ipv6_truncated, "the frame ends inside the IPv6 header or an extension header")               \
  X(ipv6_bad_version, "the EtherType says IPv6, the version field does not")                      \
  X(ipv6_bad_payload_length, "the IPv6 payload length does not fit the frame or the fragment")    \
  X(ipv6_bad_extension, "an IPv6 extension header chain that is too long or malformed")           \
  X(ipv6_source_is_destination, "IPv6 from the VIP to itself (a land attack)")                    \
  X(ipv6_source_is_vip,                                                                           \
    "IPv6 from one VIP to another, without a flow: forged, or a backend's loop")                  \
  X(ipv6_source_multicast, "IPv6 from a multicast address")                                       \
  X(ipv6_source_loopback, "IPv6 from ::1")                                                        \
  X(ipv6_martian, "an IPv6 source that no client may have: ::, or one with IPv4 in it")           \
  X(ipv6_fragment_tiny, "an IPv6 first fragment without all headers: it hides from filters")      \
  X(ipv6_fragment_overlap, "an IPv6 fragment that overlaps or repeats another of its datagram")   \
  X(ipv6_fragment_too_many, "a datagram of more than 16 IPv6 fragments")                          \
  X(ipv6_fragment_no_first, "an IPv6 fragment whose first one did not come within a second")      \
  X(ipv6_fragment_no_room, "an IPv6 fragment before its first one, and no room to hold it")       \
  X(ipv4_l4_truncated, "the IPv4 packet ends inside its TCP, UDP or ICMP header")                 \
  X(ipv6_l4_truncated, "the IPv6 packet ends inside its TCP, UDP or ICMP header")                 \
  X(ipv4_tcp_bad_header_length, "TCP over IPv4: data offset below 20 or beyond the packet")       \
  X(ipv6_tcp_bad_header_length, "TCP over IPv6: data offset below 20 or beyond the packet")       \
  X(ipv4_udp_bad_length, "UDP over IPv4: length below 8 or beyond the packet")                    \
  X(ipv6_udp_bad_length, "UDP over IPv6: length below 8 or beyond the packet")                    \
  X(unknown_port, "to a VIP, but no service has this protocol and port")                          \
  X(unknown_protocol, "to a VIP, but neither TCP, UDP nor ICMP")                                  \
  X(icmp_not_routed, "an ICMP message to a VIP that is not an error about a flow")                \
  X(icmp_bad_quote, "an ICMP error whose quoted packet can not name a flow")                      \
  X(icmp_unknown_service, "an ICMP error about a packet that no service of ours sent")            \
  X(echo_off, "an echo request to a VIP with echo = false")                                       \
  X(answer_rate_limited, "an answer to it would be above icmp_answer_rate")                       \
  X(answer_forbidden, "it would have to be answered, but nothing may be said to it")              \
  X(icmp_rate_limited, "an ICMP error above icmp_relay_rate")                                     \
  X(no_backend, "the pool has no backend that may take this flow: see `pool show`")               \
  X(neigh_unresolved, "the backend's next hop has never been resolved: see `pool show`")          \
  X(too_big, "too long for the tunnel, and no sender could send less")                            \
  X(no_buffers, "it had to be fragmented for the tunnel, and buffers for that were missing")      \
  X(no_headroom, "the buffer has no room for the outer header or an answer")                      \
  X(multi_segment, "in several buffers, and the port it came in or leaves by can not work so")    \
  X(tx_full, "the port's transmit queue refused it: see `stats`, TRANSMIT ERRORS")                \
  X(no_kernel_path, "not ours, and the port has no way to the kernel")

enum class DropReason : std::uint8_t {
#define HOLDFAST_X(name, sentence) name,
  HOLDFAST_DROP_REASONS(HOLDFAST_X)
#undef HOLDFAST_X
};

struct DropReasonText {
  std::string_view name;      // short, stable: CLI, JSON, metrics
  std::string_view sentence;  // completes "dropped: ..."
};

inline constexpr std::array kDropReasonTexts{
#define HOLDFAST_X(name, sentence) DropReasonText{#name, sentence},
    HOLDFAST_DROP_REASONS(HOLDFAST_X)
#undef HOLDFAST_X
};

inline constexpr std::size_t kDropReasonCount = kDropReasonTexts.size();

[[nodiscard]] constexpr const DropReasonText& text_of(DropReason reason) {
  return kDropReasonTexts[static_cast<std::size_t>(reason)];
}

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// Header layouts, with the field names of their RFCs. All fields are byte arrays or Be<>, so a
// header may be overlaid at any offset of a packet.
#pragma once

#include <array>
#include <cstdint>

#include "lib/net/address.h"
#include "lib/net/be.h"

namespace holdfast {

enum class EtherType : std::uint16_t {
  ipv4 = 0x0800,
  arp = 0x0806,
  vlan = 0x8100,          // IEEE 802.1Q
  service_vlan = 0x88a8,  // IEEE 802.1ad
  ipv6 = 0x86dd,
};

/// IANA protocol numbers; also IPv6 Next Header values.
enum class IpProtocol : std::uint8_t {
  hop_by_hop = 0,
  icmp = 1,
  ipv4 = 4,  // IPv4 inside IP (RFC 2003)
  tcp = 6,
  udp = 17,
  ipv6 = 41,  // IPv6 inside IP (RFC 4213, RFC 2473)
  routing = 43,
  fragment = 44,
  gre = 47,
  esp = 50,
  authentication = 51,
  icmpv6 = 58,
  no_next_header = 59,
  destination_options = 60,
};

struct EthernetHeader {
  MacAddress destination;
  MacAddress source;
  Be16 ether_type;
};
static_assert(sizeof(EthernetHeader) == 14);

/// The four bytes behind an EthernetHeader whose ether_type is a VLAN's.
struct VlanHeader {
  Be16 tag_control;  // PCP 3, DEI 1, VID 12
  Be16 ether_type;
};
static_assert(sizeof(VlanHeader) == 4);

/// RFC 791.
struct Ipv4Header {
  std::uint8_t version_ihl;      // version 4 bits, header length in 32-bit words 4 bits
  std::uint8_t type_of_service;  // DSCP 6 bits, ECN 2 bits
  Be16 total_length;
  Be16 identification;
  Be16 flags_fragment_offset;  // reserved, DF, MF, offset in 8-byte units
  std::uint8_t time_to_live;
  IpProtocol protocol;
  Be16 header_checksum;
  Be32 source;
  Be32 destination;

  static constexpr std::uint16_t kDontFragment = 0x4000;
  static constexpr std::uint16_t kMoreFragments = 0x2000;
  static constexpr std::uint16_t kOffsetMask = 0x1fff;

  [[nodiscard]] unsigned version() const { return version_ihl >> 4; }
  /// Bytes; 0..60 as it stands in the packet, unchecked.
  [[nodiscard]] unsigned header_length() const { return (version_ihl & 0xfu) * 4u; }
};
static_assert(sizeof(Ipv4Header) == 20);

/// RFC 8200.
struct Ipv6Header {
  Be32 version_class_label;  // version 4, traffic class 8, flow label 20
  Be16 payload_length;
  IpProtocol next_header;
  std::uint8_t hop_limit;
  IpAddress::Bytes source;
  IpAddress::Bytes destination;

  [[nodiscard]] unsigned version() const { return version_class_label.host() >> 28; }
  [[nodiscard]] std::uint8_t traffic_class() const {
    return static_cast<std::uint8_t>(version_class_label.host() >> 20);
  }
};
static_assert(sizeof(Ipv6Header) == 40);

/// RFC 8200 4.5.
struct Ipv6FragmentHeader {
  IpProtocol next_header;
  std::uint8_t reserved;
  Be16 offset_more;  // offset in 8-byte units 13, reserved 2, M 1
  Be32 identification;
};
static_assert(sizeof(Ipv6FragmentHeader) == 8);

/// RFC 9293.
struct TcpHeader {
  Be16 source_port;
  Be16 destination_port;
  Be32 sequence;
  Be32 acknowledgment;
  std::uint8_t data_offset;  // header length in 32-bit words 4 bits, reserved 4 bits
  std::uint8_t flags;
  Be16 window;
  Be16 checksum;
  Be16 urgent_pointer;

  static constexpr std::uint8_t kFin = 0x01;
  static constexpr std::uint8_t kSyn = 0x02;
  static constexpr std::uint8_t kRst = 0x04;
  static constexpr std::uint8_t kPsh = 0x08;
  static constexpr std::uint8_t kAck = 0x10;
};
static_assert(sizeof(TcpHeader) == 20);

/// RFC 768.
struct UdpHeader {
  Be16 source_port;
  Be16 destination_port;
  Be16 length;
  Be16 checksum;
};
static_assert(sizeof(UdpHeader) == 8);

/// RFC 2784, without the optional checksum.
struct GreHeader {
  Be16 flags_version;
  Be16 protocol_type;  // an EtherType
};
static_assert(sizeof(GreHeader) == 4);

/// Generic UDP Encapsulation (draft-ietf-intarea-gue), behind a UDP header to port 6080. Variant 1
/// has no header: the inner packet's version (4 or 6, binary 01xx) says that it is one.
struct Gue0Header {
  std::uint8_t version_length;  // version 2 bits, control 1 bit, more 32-bit words 5 bits
  IpProtocol protocol;
  Be16 flags;

  static constexpr std::uint16_t kPort = 6080;
};
static_assert(sizeof(Gue0Header) == 4);

/// RFC 792 and RFC 4443: the same first eight bytes.
struct IcmpHeader {
  std::uint8_t type;
  std::uint8_t code;
  Be16 checksum;
  Be32 rest;
};
static_assert(sizeof(IcmpHeader) == 8);

}  // namespace holdfast

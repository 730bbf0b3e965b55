// SPDX-License-Identifier: Apache-2.0
#include "lb/replay/link_layer.h"

#include <pcap/dlt.h>

#include <algorithm>
#include <array>

#include "lib/net/be.h"
#include "lib/net/headers.h"

namespace holdfast {
namespace {

using Record = std::span<const std::uint8_t>;

std::uint16_t be16_at(Record record, std::size_t at) {
  return static_cast<std::uint16_t>(record[at] << 8 | record[at + 1]);
}

/// What a link's own header says; the packet begins behind it.
struct LinkHeader {
  std::size_t length = 0;
  std::uint16_t ether_type = 0;
  FrameEnds ends{};
};

/// By the version field; what is neither IPv4 nor IPv6 is left to the parser to refuse.
std::uint16_t ip_type_of(Record packet) {
  const bool v6 = !packet.empty() && packet[0] >> 4 == 6;
  return static_cast<std::uint16_t>(v6 ? EtherType::ipv6 : EtherType::ipv4);
}

LinkHeader bare(Record record, std::size_t length, const FrameEnds& ends) {
  return {length, ip_type_of(record.subspan(std::min(length, record.size()))), ends};
}

/// The two versions have the same fields in other places.
struct CookedLayout {
  std::size_t length;
  std::size_t ether_type;
  std::size_t packet_type;  // its last byte
  std::size_t address_length;
  std::size_t address;
};
constexpr CookedLayout kCooked{16, 14, 1, 5, 6};
constexpr CookedLayout kCooked2{20, 0, 10, 11, 12};

std::optional<LinkHeader> cooked(Record record, const CookedLayout& layout, FrameEnds ends) {
  if (record.size() < layout.length) return std::nullopt;
  // To all or to many: such frames are never answered, so this must not get lost.
  const std::uint8_t packet_type = record[layout.packet_type];
  if (packet_type == 1 || packet_type == 2) ends.destination.bytes.fill(0xff);
  if (record[layout.address_length] == ends.source.bytes.size())
    std::copy_n(record.begin() + static_cast<std::ptrdiff_t>(layout.address),
                ends.source.bytes.size(), ends.source.bytes.begin());
  return LinkHeader{layout.length, be16_at(record, layout.ether_type), ends};
}

/// RFC 1661 6.5, 6.6: protocol field, address and control bytes may be compressed.
LinkHeader ppp(Record record, const FrameEnds& ends) {
  std::size_t at = record.size() > 1 && record[0] == 0xff && record[1] == 0x03 ? 2 : 0;
  if (at < record.size()) at += (record[at] & 1) != 0 ? 1 : 2;
  return bare(record, at, ends);
}

std::optional<LinkHeader> read_header(LinkType type, Record record, const FrameEnds& ends) {
  constexpr std::size_t kLoopback = 4;
  switch (type) {
    case LinkType::ethernet:
      return std::nullopt;
    case LinkType::raw_ip:
      return bare(record, 0, ends);
    case LinkType::linux_cooked:
      return cooked(record, kCooked, ends);
    case LinkType::linux_cooked_2:
      return cooked(record, kCooked2, ends);
    case LinkType::loopback:
      return bare(record, kLoopback, ends);
    case LinkType::ppp:
      return ppp(record, ends);
  }
  return std::nullopt;
}

}  // namespace

std::optional<LinkType> link_type_of(int dlt) {
  switch (dlt) {
    case DLT_EN10MB:
      return LinkType::ethernet;
    case DLT_RAW:
    case DLT_IPV4:
    case DLT_IPV6:
      return LinkType::raw_ip;
    case DLT_LINUX_SLL:
      return LinkType::linux_cooked;
    case DLT_LINUX_SLL2:
      return LinkType::linux_cooked_2;
    case DLT_NULL:
    case DLT_LOOP:
      return LinkType::loopback;
    case DLT_PPP:
      return LinkType::ppp;
    default:
      return std::nullopt;
  }
}

void make_frame(LinkType type, Record record, const FrameEnds& ends,
                std::vector<std::uint8_t>& frame) {
  frame.clear();
  if (type == LinkType::ethernet) {
    frame.assign(record.begin(), record.end());
    return;
  }
  const auto header = read_header(type, record, ends);
  if (!header || header->length > record.size()) return;
  const Record packet = record.subspan(header->length);
  const auto append = [&frame](const auto& bytes) {
    frame.insert(frame.end(), bytes.begin(), bytes.end());
  };
  append(header->ends.destination.bytes);
  append(header->ends.source.bytes);
  append(std::array{static_cast<std::uint8_t>(header->ether_type >> 8),
                    static_cast<std::uint8_t>(header->ether_type)});
  append(packet);
}

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
#include "lib/net/ipv4_fragmenter.h"

#include <algorithm>
#include <cstring>

#include "lib/net/checksum.h"
#include "lib/net/ip_walk.h"

namespace holdfast {

namespace {

constexpr std::size_t kUnit = 8;  // of the offset field
constexpr std::size_t kMaxDatagram = 65535;
constexpr std::uint8_t kEndOfOptions = 0;
constexpr std::uint8_t kNoOperation = 1;
constexpr std::uint8_t kCopied = 0x80;

/// The options that RFC 791 3.1 wants in every fragment, filled up with zeros to whole words.
/// Behind one that is malformed nothing can be told apart, and nothing is copied. Returns their
/// length.
std::size_t copy_options(const std::uint8_t* from, std::size_t size, std::uint8_t* to) {
  std::size_t written = 0;
  for (std::size_t at = 0; at < size && from[at] != kEndOfOptions;) {
    if (from[at] == kNoOperation) {
      ++at;
      continue;
    }
    if (size - at < 2) break;
    const std::size_t length = from[at + 1];
    if (length < 2 || length > size - at) break;
    if ((from[at] & kCopied) != 0) {
      std::memcpy(to + written, from + at, length);
      written += length;
    }
    at += length;
  }
  return (written + 3) / 4 * 4;
}

/// The most payload of a fragment that another one follows; 0: none fits.
std::size_t whole_units(std::size_t room, std::size_t header) {
  return room < header ? 0 : (room - header) / kUnit * kUnit;
}

}  // namespace

Ipv4Fragmenter::Ipv4Fragmenter(const std::uint8_t* ip, Room room) {
  const auto& header = overlay<Ipv4Header>(ip);
  first_length_ = header.header_length();
  std::memcpy(first_.data(), ip, first_length_);
  std::memcpy(later_.data(), ip, sizeof header);
  later_length_ = sizeof header + copy_options(ip + sizeof header, first_length_ - sizeof header,
                                               later_.data() + sizeof header);
  later_[0] = static_cast<std::uint8_t>(0x40 | later_length_ / 4);

  payload_ = header.total_length.host() - first_length_;
  base_ = header.flags_fragment_offset.host() & Ipv4Header::kOffsetMask;
  if (header.total_length.host() <= room.first) {
    first_payload_ = payload_;
    count_ = 1;
    return;
  }
  first_payload_ = whole_units(room.first, first_length_);
  later_payload_ = whole_units(room.later, later_length_);
  if (first_payload_ == 0 || later_payload_ == 0 || base_ * kUnit + payload_ > kMaxDatagram) return;
  const std::size_t rest = payload_ - first_payload_;
  count_ = static_cast<unsigned>(1 + (rest + later_payload_ - 1) / later_payload_);
}

Ipv4Fragmenter::Part Ipv4Fragmenter::part(unsigned index) const {
  if (index == 0) return {.offset = 0, .length = first_payload_};
  const std::size_t offset = first_payload_ + (index - 1) * later_payload_;
  return {.offset = offset, .length = std::min(later_payload_, payload_ - offset)};
}

void Ipv4Fragmenter::write_header(unsigned index, std::uint8_t* at) const {
  Header bytes = index == 0 ? first_ : later_;
  const std::size_t length = header_length(index);
  const Part mine = part(index);
  Ipv4Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  // The last one ends as the packet did: if that was a fragment itself, others may follow.
  const unsigned before = header.flags_fragment_offset.host();
  const unsigned more = index + 1 < count_ ? unsigned{Ipv4Header::kMoreFragments} : 0u;
  const unsigned flags = (before & ~unsigned{Ipv4Header::kOffsetMask}) | more;
  header.flags_fragment_offset =
      Be16::from_host(static_cast<std::uint16_t>(flags | (base_ + mine.offset / kUnit)));
  header.total_length = Be16::from_host(static_cast<std::uint16_t>(length + mine.length));
  header.header_checksum = {};
  std::memcpy(bytes.data(), &header, sizeof header);
  header.header_checksum = checksum_finish(checksum_add(std::span(bytes).first(length)));
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(at, bytes.data(), length);
}

}  // namespace holdfast

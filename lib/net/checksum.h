// SPDX-License-Identifier: Apache-2.0
// The Internet checksum (RFC 1071) and its incremental update (RFC 1624). Pure; any thread.
// Sums are kept in memory order: the ones' complement sum is the same in either byte order as long
// as the result is stored the way it was read.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include "lib/net/headers.h"

namespace holdfast {

/// Ones' complement sum of `bytes`, added to `sum`; an odd last byte counts as its high half.
[[nodiscard]] inline std::uint64_t checksum_add(std::span<const std::uint8_t> bytes,
                                                std::uint64_t sum = 0) {
  std::size_t i = 0;
  for (; i + 4 <= bytes.size(); i += 4) {
    std::uint32_t word;
    std::memcpy(&word, bytes.data() + i, 4);
    sum += word;
  }
  std::uint32_t rest = 0;
  // An empty span may point nowhere, and memcpy wants a place even for nothing.
  if (i < bytes.size()) std::memcpy(&rest, bytes.data() + i, bytes.size() - i);
  return sum + rest;
}

/// Folds to 16 bits, not complemented.
[[nodiscard]] inline std::uint16_t checksum_fold(std::uint64_t sum) {
  sum = (sum & 0xffffffffu) + (sum >> 32);
  sum = (sum & 0xffffu) + (sum >> 16);
  sum = (sum & 0xffffu) + (sum >> 16);
  sum = (sum & 0xffffu) + (sum >> 16);
  return static_cast<std::uint16_t>(sum);
}

/// The checksum as it is stored in a header.
[[nodiscard]] inline Be16 checksum_finish(std::uint64_t sum) {
  return std::bit_cast<Be16>(static_cast<std::uint16_t>(~checksum_fold(sum)));
}

/// Checksum of an option-free IPv4 header, whatever its checksum field holds now. Field by field: a
/// header that was just written is still in registers, and is not read back from memory.
[[nodiscard]] inline Be16 ipv4_header_checksum(const Ipv4Header& header) {
  const auto word = [](std::uint8_t first, std::uint8_t second) {
    return std::bit_cast<std::uint16_t>(std::array{first, second});
  };
  const std::uint64_t sum = std::uint64_t{word(header.version_ihl, header.type_of_service)} +
                            header.total_length.raw() + header.identification.raw() +
                            header.flags_fragment_offset.raw() +
                            word(header.time_to_live, static_cast<std::uint8_t>(header.protocol)) +
                            header.source.raw() + header.destination.raw();
  return checksum_finish(sum);
}

/// RFC 1624 eqn. 3: what `checksum` becomes when a 16-bit word changes from `before` to `after`.
[[nodiscard]] inline Be16 checksum_update(Be16 checksum, Be16 before, Be16 after) {
  const std::uint64_t sum = std::uint64_t{static_cast<std::uint16_t>(~checksum.raw())} +
                            static_cast<std::uint16_t>(~before.raw()) + after.raw();
  return checksum_finish(sum);
}

/// The pseudo header's part of a TCP, UDP or ICMPv6 checksum (RFC 9293 3.1, RFC 8200 8.1).
/// `length`: bytes of the transport segment.
[[nodiscard]] std::uint64_t pseudo_header_sum(const IpAddress& source, const IpAddress& destination,
                                              IpProtocol protocol, std::uint32_t length);

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
#include "lib/net/checksum.h"

namespace holdfast {

std::uint64_t pseudo_header_sum(const IpAddress& source, const IpAddress& destination,
                                IpProtocol protocol, std::uint32_t length) {
  const std::size_t width = source.is_v4() ? 4 : 16;
  std::uint64_t sum = checksum_add(std::span(source.bytes()).first(width));
  sum = checksum_add(std::span(destination.bytes()).first(width), sum);
  // IPv4 has a 16-bit length and protocol, IPv6 32-bit ones; the sum is the same.
  struct {
    Be32 length;
    Be32 protocol;
  } tail{Be32::from_host(length), Be32::from_host(static_cast<std::uint32_t>(protocol))};
  const auto bytes = std::bit_cast<std::array<std::uint8_t, sizeof(tail)>>(tail);
  return checksum_add(bytes, sum);
}

}  // namespace holdfast

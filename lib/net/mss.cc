// SPDX-License-Identifier: Apache-2.0
#include "lib/net/mss.h"

#include <cstddef>
#include <cstring>

#include "lib/net/checksum.h"
#include "lib/net/headers.h"

namespace holdfast {
namespace {

// RFC 9293 section 3.1.
enum class TcpOption : std::uint8_t { end_of_list = 0, no_operation = 1, maximum_segment_size = 2 };
constexpr std::size_t kMssLength = 4;  // kind, length, the MSS itself

/// Where the MSS itself stands, from the header's start; 0: there is none, or the options do not
/// add up. Each step is at least a byte of at most 40, so the walk is short.
std::size_t find_mss(std::span<const std::uint8_t> header) {
  std::size_t found = 0;
  for (std::size_t at = sizeof(TcpHeader); at < header.size();) {
    const auto kind = static_cast<TcpOption>(header[at]);
    if (kind == TcpOption::end_of_list) break;
    if (kind == TcpOption::no_operation) {
      ++at;
      continue;
    }
    if (header.size() - at < 2) return 0;
    const std::size_t length = header[at + 1];
    if (length < 2 || length > header.size() - at) return 0;
    if (kind == TcpOption::maximum_segment_size) {
      // A receiver may believe either of two.
      if (length != kMssLength || found != 0) return 0;
      found = at + 2;
    }
    at += length;
  }
  return found;
}

/// The two bytes of a word that stands at an odd place lie in two words of the checksum's sum; with
/// swapped bytes they count there as they should.
Be16 as_summed(Be16 word, std::size_t place) {
  return place % 2 == 0 ? word : Be16::from_host(__builtin_bswap16(word.host()));
}

}  // namespace

bool clamp_mss(std::span<std::uint8_t> tcp, std::uint16_t most) noexcept {
  if (tcp.size() < sizeof(TcpHeader)) return false;
  const std::size_t length = (tcp[offsetof(TcpHeader, data_offset)] >> 4) * std::size_t{4};
  if (length < sizeof(TcpHeader) || length > tcp.size()) return false;
  const std::size_t place = find_mss(tcp.first(length));
  if (place == 0) return false;

  Be16 before;
  std::memcpy(&before, tcp.data() + place, sizeof before);
  if (before.host() <= most) return false;
  const Be16 after = Be16::from_host(most);
  std::memcpy(tcp.data() + place, &after, sizeof after);

  std::uint8_t* const field = tcp.data() + offsetof(TcpHeader, checksum);
  Be16 checksum;
  std::memcpy(&checksum, field, sizeof checksum);
  checksum = checksum_update(checksum, as_summed(before, place), as_summed(after, place));
  std::memcpy(field, &checksum, sizeof checksum);
  return true;
}

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// How one IPv4 packet becomes several (RFC 791 3.2): which bytes go into which fragment, and the
// header of each. Works on fragments as on whole packets. Moves no payload: that is the caller's.
// Pure; any thread; never throws.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "lib/net/headers.h"

namespace holdfast {

class Ipv4Fragmenter {
 public:
  /// The longest fragments, header included, in bytes.
  struct Room {
    std::size_t first;
    std::size_t later;
  };
  /// A fragment's payload as a part of the packet's payload, in bytes.
  struct Part {
    std::size_t offset;
    std::size_t length;
  };

  /// Copies what it needs of the header. Requires: lengths in it are good (lib/net/parse.h).
  Ipv4Fragmenter(const std::uint8_t* ip, Room room);

  /// 0: it can not be done, since a header and eight bytes find no room, or since the packet ends
  /// beyond 65,535 bytes of its datagram.
  [[nodiscard]] unsigned count() const { return count_; }
  /// Requires: index < count().
  [[nodiscard]] Part part(unsigned index) const;
  /// The first one has the packet's options, the others those that RFC 791 wants in all of them.
  [[nodiscard]] std::size_t header_length(unsigned index) const {
    return index == 0 ? first_length_ : later_length_;
  }
  /// Writes header_length(index) bytes, with their checksum. `at` may be where the packet's own
  /// header is.
  void write_header(unsigned index, std::uint8_t* at) const;

 private:
  static constexpr std::size_t kMaxHeader = 60;
  using Header = std::array<std::uint8_t, kMaxHeader>;

  Header first_{};
  Header later_{};
  std::size_t first_length_ = 0;
  std::size_t later_length_ = 0;
  std::size_t payload_ = 0;        // bytes in all
  std::size_t first_payload_ = 0;  // bytes in the first one
  std::size_t later_payload_ = 0;  // bytes in each of the others, but for the last one
  unsigned base_ = 0;              // the packet's own offset, in units of 8 bytes
  unsigned count_ = 0;
};

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// The words of the fragment tables: a piece of a datagram, what is known of a datagram, and what
// becomes of a fragment. Values; pure; any thread.
#pragma once

#include <cstdint>
#include <span>

#include "lib/model/drop_reason.h"
#include "lib/net/address.h"
#include "lib/net/headers.h"

namespace holdfast {

/// The bytes of a datagram's payload that one fragment carries: [start, end). Requires: start <
/// end, start is a multiple of 8 (RFC 791 3.1, RFC 8200 4.5).
struct FragmentPiece {
  std::uint16_t start = 0;
  std::uint16_t end = 0;
  bool last = false;  // no fragment comes behind it

  friend constexpr bool operator==(const FragmentPiece&, const FragmentPiece&) = default;
};

/// How a piece goes with those that were there before it.
enum class Clash : std::uint8_t {
  none,
  duplicate,  // the network delivered a fragment twice
  overlap,    // shares bytes with another one, or lies behind the end
};

/// RFC 8200 4.5 allows to tell exact duplicates from overlaps, since networks do duplicate.
[[nodiscard]] constexpr Clash clash_of(const FragmentPiece& piece, const FragmentPiece& other) {
  if (piece == other) return Clash::duplicate;
  const bool share = piece.start < other.end && other.start < piece.end;
  const bool behind_end =
      (other.last && piece.end > other.end) || (piece.last && other.end > piece.end);
  return share || behind_end ? Clash::overlap : Clash::none;
}

/// The worst over all of `others`.
[[nodiscard]] constexpr Clash clash_with(const FragmentPiece& piece,
                                         std::span<const FragmentPiece> others) {
  Clash worst = Clash::none;
  for (const FragmentPiece& other : others) {
    const Clash clash = clash_of(piece, other);
    if (clash > worst) worst = clash;
  }
  return worst;
}

/// All bytes from 0 to the end are there. Requires: no two of `pieces` clash.
[[nodiscard]] constexpr bool is_whole(std::span<const FragmentPiece> pieces) {
  unsigned bytes = 0;
  unsigned size = 0;  // 0: the last piece is missing
  for (const FragmentPiece& piece : pieces) {
    bytes += unsigned{piece.end} - piece.start;
    if (piece.last) size = piece.end;
  }
  return size != 0 && bytes == size;
}

/// What a datagram's first fragment says of all its fragments: which flow they belong to.
struct DatagramFlow {
  IpProtocol protocol{};
  Be16 client_port{};
  Be16 service_port{};

  friend bool operator==(const DatagramFlow&, const DatagramFlow&) = default;
};

/// From what says least to what says most.
enum class DatagramState : std::uint8_t {
  free,
  waiting,   // for its first fragment; the others are held
  complete,  // each of its bytes came by
  known,     // its flow is
  refused,   // all of it is dropped
};

/// What becomes of a fragment.
struct FragmentFate {
  enum class What : std::uint8_t { go_on, hold, drop };
  What what = What::drop;
  DropReason reason{};  // of a drop
  DatagramFlow flow{};  // of one that goes on

  [[nodiscard]] static constexpr FragmentFate goes_on(const DatagramFlow& flow) {
    return {.what = What::go_on, .flow = flow};
  }
  [[nodiscard]] static constexpr FragmentFate held() { return {.what = What::hold}; }
  [[nodiscard]] static constexpr FragmentFate dropped(DropReason reason) {
    return {.what = What::drop, .reason = reason};
  }
  friend bool operator==(const FragmentFate&, const FragmentFate&) = default;
};

/// The same faults are counted apart for the two families.
struct FragmentReasons {
  DropReason overlap, too_many, no_first, no_room;
};
[[nodiscard]] constexpr FragmentReasons fragment_reasons(Family family) {
  if (family == Family::ipv4)
    return {DropReason::ipv4_fragment_overlap, DropReason::ipv4_fragment_too_many,
            DropReason::ipv4_fragment_no_first, DropReason::ipv4_fragment_no_room};
  return {DropReason::ipv6_fragment_overlap, DropReason::ipv6_fragment_too_many,
          DropReason::ipv6_fragment_no_first, DropReason::ipv6_fragment_no_room};
}

}  // namespace holdfast

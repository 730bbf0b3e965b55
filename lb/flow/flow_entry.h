// SPDX-License-Identifier: Apache-2.0
// One entry of the flow table: 16 bytes as two words, and the clock that they are stamped with.
// Values; any thread.
//
//   word 0   tag 42 | backend 16 | state 3 | proven 2 | adopted 1
//   word 1   service 16 | last seen 22 | first seen 26
//
// Word 0 is all that another worker may read (lb/flow/flow_table.h says how); so what decides where
// a packet goes stands in one word and can not tear. An entry holds no address.
#pragma once

#include <chrono>
#include <cstdint>

#include "lib/model/numbers.h"

namespace holdfast {

/// The flow table's clock: quarters of a second since the daemon's start.
using FlowTime = std::chrono::duration<std::int64_t, std::ratio<1, 4>>;

enum class FlowState : std::uint8_t {
  free,         // the place holds no flow
  embryonic,    // a SYN, a first datagram or a mid-flow first packet was seen, nothing since
  established,  // answered by the client: carries data
  closing_fin,  // a FIN was seen: only a payload makes it established again
  closing_rst,  // a RST was seen: any packet without SYN, FIN or RST makes it established again
  closing_embryonic,  // like closing_rst, but nothing was established: a RST on an embryonic flow,
                      // or a SYN on a closing one
};

/// What an entry knows of its flow's life (lb/flow/flow_life.h has the rules).
struct FlowLife {
  /// Two further periods with activity since it was established: the flow is proven.
  static constexpr std::uint8_t kProven = 2;

  FlowState state = FlowState::free;
  std::uint8_t proven = 0;  // 0..kProven; kept while closing

  [[nodiscard]] constexpr bool closing() const {
    return state == FlowState::closing_fin || state == FlowState::closing_rst ||
           state == FlowState::closing_embryonic;
  }
  friend constexpr bool operator==(const FlowLife&, const FlowLife&) = default;
};

struct FlowEntry {
  static constexpr unsigned kTagShift = 22;
  static constexpr unsigned kLastSeenBits = 22;  // 12.1 days: more than kMaxFlowTimeout and a sweep
  static constexpr unsigned kFirstSeenBits =
      26;  // 194 days; the sweep stops ages at three quarters

  std::uint64_t word0 = 0;
  std::uint64_t word1 = 0;

  /// An entry first and last seen `now`. Requires: tag < 2^42.
  [[nodiscard]] static constexpr FlowEntry make(std::uint64_t tag, BackendNumber backend,
                                                ServiceNumber service, FlowLife life, bool adopted,
                                                FlowTime now) {
    FlowEntry entry{.word0 = tag << kTagShift | std::uint64_t{adopted}, .word1 = 0};
    entry.set_backend(backend);
    entry.set_life(life);
    entry.set_service(service);
    entry.set_last_seen(now);
    entry.set_first_seen(now);
    return entry;
  }

  [[nodiscard]] constexpr std::uint64_t tag() const { return word0 >> kTagShift; }
  [[nodiscard]] constexpr bool is_free() const { return (word0 & kStateMask) == 0; }
  /// Holds a flow with this tag. Without a branch.
  [[nodiscard]] constexpr bool is_flow(std::uint64_t its_tag) const {
    return ((word0 >> kTagShift) == its_tag) & ((word0 & kStateMask) != 0);
  }
  [[nodiscard]] constexpr BackendNumber backend() const {
    return static_cast<BackendNumber>(static_cast<std::uint16_t>(word0 >> kBackendShift));
  }
  [[nodiscard]] constexpr FlowLife life() const {
    return {.state = static_cast<FlowState>((word0 & kStateMask) >> kStateShift),
            .proven = static_cast<std::uint8_t>((word0 & kProvenMask) >> kProvenShift)};
  }
  /// First seen is not the flow's beginning: it was copied from another worker's table, or its
  /// first packet here was one from the middle.
  [[nodiscard]] constexpr bool adopted() const { return (word0 & 1) != 0; }
  [[nodiscard]] constexpr ServiceNumber service() const {
    return static_cast<ServiceNumber>(static_cast<std::uint16_t>(word1 >> kServiceShift));
  }
  /// Time since the last packet. Exact below 12.1 days; an entry never lives that long without one,
  /// since timeouts are at most kMaxFlowTimeout and the sweep comes by within seconds.
  [[nodiscard]] constexpr FlowTime idle(FlowTime now) const {
    return FlowTime{(now.count() - static_cast<std::int64_t>(word1 >> kLastSeenShift)) &
                    kLastSeenMax};
  }
  /// Time since the first packet, or "at least kOldest": the sweep keeps it from wrapping.
  [[nodiscard]] constexpr FlowTime age(FlowTime now) const {
    return FlowTime{(now.count() - static_cast<std::int64_t>(word1)) & kFirstSeenMax};
  }
  /// Where the sweep stops an age: 145 days.
  static constexpr FlowTime kOldest{(std::int64_t{1} << kFirstSeenBits) / 4 * 3};

  constexpr void set_backend(BackendNumber backend) {
    word0 = (word0 & ~kBackendMask) | std::uint64_t{index_of(backend)} << kBackendShift;
  }
  constexpr void set_life(FlowLife life) {
    word0 = (word0 & ~(kStateMask | kProvenMask)) |
            static_cast<std::uint64_t>(life.state) << kStateShift |
            std::uint64_t{life.proven} << kProvenShift;
  }
  constexpr void set_adopted(bool adopted) {
    word0 = (word0 & ~std::uint64_t{1}) | std::uint64_t{adopted};
  }
  constexpr void set_service(ServiceNumber service) {
    word1 = (word1 & ~kServiceMask) | std::uint64_t{index_of(service)} << kServiceShift;
  }
  constexpr void set_last_seen(FlowTime now) {
    word1 = (word1 & ~kLastSeenMask) | static_cast<std::uint64_t>(now.count() & kLastSeenMax)
                                           << kLastSeenShift;
  }
  constexpr void set_first_seen(FlowTime now) {
    word1 = (word1 & ~kFirstSeenMask) | static_cast<std::uint64_t>(now.count() & kFirstSeenMax);
  }

  friend constexpr bool operator==(const FlowEntry&, const FlowEntry&) = default;

 private:
  static constexpr unsigned kBackendShift = 6;
  static constexpr unsigned kStateShift = 3;
  static constexpr unsigned kProvenShift = 1;
  static constexpr std::uint64_t kBackendMask = std::uint64_t{0xffff} << kBackendShift;
  static constexpr std::uint64_t kStateMask = std::uint64_t{7} << kStateShift;
  static constexpr std::uint64_t kProvenMask = std::uint64_t{3} << kProvenShift;
  static constexpr unsigned kServiceShift = 48;
  static constexpr unsigned kLastSeenShift = 26;
  static constexpr std::int64_t kLastSeenMax = (std::int64_t{1} << kLastSeenBits) - 1;
  static constexpr std::int64_t kFirstSeenMax = (std::int64_t{1} << kFirstSeenBits) - 1;
  static constexpr std::uint64_t kServiceMask = std::uint64_t{0xffff} << kServiceShift;
  static constexpr std::uint64_t kLastSeenMask = static_cast<std::uint64_t>(kLastSeenMax)
                                                 << kLastSeenShift;
  static constexpr std::uint64_t kFirstSeenMask = static_cast<std::uint64_t>(kFirstSeenMax);
};
static_assert(sizeof(FlowEntry) == 16);

}  // namespace holdfast

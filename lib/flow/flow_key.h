// SPDX-License-Identifier: Apache-2.0
// The identity of a flow (client 5-tuple toward a VIP) and placement version 1: which Maglev slot,
// flow-table buckets, tag and entropy belong to it. Pure; any thread.
//
// Placement version 1 is fixed for good: two load balancers with the same seed must agree, and a
// change would move every flow of a fleet at once. Vectors are in tests/unit/flow_key_test.cc.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>

#include "lib/net/address.h"
#include "lib/net/headers.h"

namespace holdfast {

/// The fleet's 64-bit secret. Never printed; status shows a fingerprint.
struct HashSeed {
  std::uint64_t value = 0;
};

/// The bytes that are hashed: source, destination, source port, destination port, protocol, each in
/// wire order; 13 bytes for IPv4, 37 for IPv6.
class FlowKey {
 public:
  static constexpr std::size_t kV4Size = 13;
  static constexpr std::size_t kV6Size = 37;

  FlowKey() = default;
  /// `source` and `destination` point at addresses in wire order: 4 bytes each, or 16.
  FlowKey(Family family, const std::uint8_t* source, const std::uint8_t* destination,
          Be16 source_port, Be16 destination_port, IpProtocol protocol) {
    const std::size_t width = family == Family::ipv4 ? 4 : 16;
    std::memcpy(bytes_.data(), source, width);
    std::memcpy(bytes_.data() + width, destination, width);
    std::memcpy(bytes_.data() + 2 * width, &source_port, 2);
    std::memcpy(bytes_.data() + 2 * width + 2, &destination_port, 2);
    bytes_[2 * width + 4] = static_cast<std::uint8_t>(protocol);
    size_ = static_cast<std::uint8_t>(2 * width + 5);
  }
  /// Requires: both addresses of one family.
  FlowKey(const IpAddress& source, const IpAddress& destination, Be16 source_port,
          Be16 destination_port, IpProtocol protocol)
      : FlowKey(source.family(), source.bytes().data(), destination.bytes().data(), source_port,
                destination_port, protocol) {}

  /// The same from a packet in which all of it lies together: source address, destination address,
  /// source port, destination port. Written in pieces of the size in which the hash reads them.
  template <Family kFamily>
  void set_contiguous(const std::uint8_t* at, IpProtocol protocol) {
    constexpr std::size_t kBytes = kFamily == Family::ipv4 ? 12 : 36;
    std::memcpy(bytes_.data(), at, kBytes);
    bytes_[kBytes] = static_cast<std::uint8_t>(protocol);
    size_ = kBytes + 1;
  }

  [[nodiscard]] std::span<const std::uint8_t> bytes() const { return {bytes_.data(), size_}; }
  [[nodiscard]] bool is_v4() const { return size_ == kV4Size; }

 private:
  std::array<std::uint8_t, kV6Size> bytes_{};
  std::uint8_t size_ = 0;
};

/// XXH3-128 of a FlowKey with the fleet seed. Everything about a flow's place derives from it.
struct FlowHash {
  std::uint64_t low64 = 0;
  std::uint64_t high64 = 0;

  friend bool operator==(const FlowHash&, const FlowHash&) = default;
};

[[nodiscard]] FlowHash hash_flow(const FlowKey& key, HashSeed seed);

/// Maglev slot in [0, table_size): high 64 bits of low64 x table_size.
[[nodiscard]] inline std::uint32_t maglev_slot(const FlowHash& hash, std::uint32_t table_size) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint32_t>(Wide{hash.low64} * table_size >> 64);
}

/// Flow-constant bits for outer source ports, flow labels and the choice among next hops.
[[nodiscard]] inline std::uint32_t flow_entropy(const FlowHash& hash) {
  return static_cast<std::uint32_t>(hash.low64);
}

/// Where a flow may lie in a flow table: its 42-bit tag and the 44 bits that choose the bucket.
[[nodiscard]] inline std::uint64_t flow_tag(const FlowHash& hash) { return hash.high64 >> 22; }
[[nodiscard]] inline std::uint64_t flow_bucket_bits(const FlowHash& hash) {
  constexpr std::uint64_t kMask22 = (std::uint64_t{1} << 22) - 1;
  return (hash.high64 & kMask22) << 22 | (hash.low64 >> 20 & kMask22);
}

/// A short text that two operators can compare without showing the seed: 8 hexadecimal digits.
[[nodiscard]] std::string seed_fingerprint(HashSeed seed);

}  // namespace holdfast

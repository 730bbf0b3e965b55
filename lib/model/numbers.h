// SPDX-License-Identifier: Apache-2.0
// Small numbers that stand for things in flow entries and counters. They are handed out by ctrl,
// and a number is reused only after every worker's sweep has dropped the entries that hold it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace holdfast {

/// One membership (pool, backend address). Index into Snapshot::backends.
enum class BackendNumber : std::uint16_t {};
/// Index into Snapshot::services.
enum class ServiceNumber : std::uint16_t {};
/// Index into Snapshot::pools.
enum class PoolNumber : std::uint16_t {};
/// A port of [dataplane] in the order of the config; not a DPDK port id.
enum class PortNumber : std::uint8_t {};

inline constexpr BackendNumber kNoBackend{0xffff};
inline constexpr ServiceNumber kNoService{0xffff};
inline constexpr PortNumber kNoPort{0xff};

/// At most this many memberships, and as many services (flow entries hold 16 bits; one is "none").
inline constexpr std::size_t kMaxNumbers = 0xffff;

template <class Number>
[[nodiscard]] constexpr std::size_t index_of(Number number) requires std::is_enum_v<Number> {
  return static_cast<std::size_t>(number);
}

}  // namespace holdfast

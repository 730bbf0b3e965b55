// SPDX-License-Identifier: Apache-2.0
// Integers in network byte order, as a type: no implicit conversion, so a port can not be mixed up
// with its swapped twin. Alignment 1, so header structs need no packing and any offset is legal.
#pragma once

#include <array>
#include <bit>
#include <compare>
#include <concepts>
#include <cstdint>

namespace holdfast {

template <std::unsigned_integral T>
class Be {
 public:
  constexpr Be() = default;

  [[nodiscard]] static constexpr Be from_host(T value) {
    Be result;
    result.bytes_ = std::bit_cast<Bytes>(swap(value));
    return result;
  }
  [[nodiscard]] constexpr T host() const { return swap(std::bit_cast<T>(bytes_)); }
  /// The value as it lies in memory: for hashing and checksums, never for arithmetic.
  [[nodiscard]] constexpr T raw() const { return std::bit_cast<T>(bytes_); }

  /// Byte-wise order of the wire form is numeric order.
  friend constexpr auto operator<=>(const Be&, const Be&) = default;

 private:
  using Bytes = std::array<std::uint8_t, sizeof(T)>;

  static constexpr T swap(T value) {
    if constexpr (std::endian::native == std::endian::big || sizeof(T) == 1) return value;
    if constexpr (sizeof(T) == 2) return __builtin_bswap16(value);
    if constexpr (sizeof(T) == 4) return __builtin_bswap32(value);
    if constexpr (sizeof(T) == 8) return __builtin_bswap64(value);
  }

  Bytes bytes_{};
};

using Be16 = Be<std::uint16_t>;
using Be32 = Be<std::uint32_t>;
using Be64 = Be<std::uint64_t>;

}  // namespace holdfast

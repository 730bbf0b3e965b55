// SPDX-License-Identifier: Apache-2.0
// Addresses as values: IPv4, IPv6 and MAC; parse, format, compare. Pure; any thread.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "lib/net/be.h"

namespace holdfast {

enum class Family : std::uint8_t { ipv4 = 4, ipv6 = 6 };

/// An IPv4 or IPv6 address. The family is part of the value: ::ffff:192.0.2.1 is an IPv6 address
/// and never equals 192.0.2.1. Order: IPv4 before IPv6, then numerically (the order of Maglev's
/// turns).
class IpAddress {
 public:
  using Bytes = std::array<std::uint8_t, 16>;

  constexpr IpAddress() = default;
  [[nodiscard]] static constexpr IpAddress v4(Be32 address) {
    IpAddress result;
    const auto raw = std::bit_cast<std::array<std::uint8_t, 4>>(address);
    for (std::size_t i = 0; i < 4; ++i) result.bytes_[i] = raw[i];
    return result;
  }
  [[nodiscard]] static constexpr IpAddress v6(const Bytes& bytes) {
    IpAddress result;
    result.family_ = Family::ipv6;
    result.bytes_ = bytes;
    return result;
  }
  /// Textual form of RFC 4291 or dotted quad; nothing else (no zone, no prefix, no spaces).
  [[nodiscard]] static std::optional<IpAddress> parse(std::string_view text);

  [[nodiscard]] constexpr Family family() const { return family_; }
  [[nodiscard]] constexpr bool is_v4() const { return family_ == Family::ipv4; }
  /// Wire order; an IPv4 address uses the first four, the rest are zero.
  [[nodiscard]] constexpr const Bytes& bytes() const { return bytes_; }
  /// Requires: is_v4().
  [[nodiscard]] constexpr Be32 as_v4() const {
    return std::bit_cast<Be32>(std::array{bytes_[0], bytes_[1], bytes_[2], bytes_[3]});
  }
  /// All bits zero: "no address".
  [[nodiscard]] constexpr bool is_unspecified() const { return bytes_ == Bytes{}; }
  [[nodiscard]] bool is_loopback() const;
  [[nodiscard]] bool is_multicast() const;
  /// IPv4 255.255.255.255 and class E (240/4); never true for IPv6.
  [[nodiscard]] bool is_reserved_v4() const;
  [[nodiscard]] bool is_link_local() const;
  /// RFC 5952 text.
  [[nodiscard]] std::string text() const;

  friend constexpr auto operator<=>(const IpAddress&, const IpAddress&) = default;

 private:
  Family family_ = Family::ipv4;
  Bytes bytes_{};
};

/// A 48-bit Ethernet address.
struct MacAddress {
  std::array<std::uint8_t, 6> bytes{};

  /// "02:00:5e:10:00:01", hexadecimal of either case.
  [[nodiscard]] static std::optional<MacAddress> parse(std::string_view text);
  [[nodiscard]] std::string text() const;
  [[nodiscard]] constexpr bool is_zero() const { return *this == MacAddress{}; }

  friend constexpr auto operator<=>(const MacAddress&, const MacAddress&) = default;
};

/// An address block such as 192.0.2.0/24; host bits are zero.
struct Prefix {
  IpAddress address{};
  std::uint8_t length = 0;

  /// "ADDRESS/LENGTH", or a bare address as its /32 or /128. Set host bits are refused.
  [[nodiscard]] static std::optional<Prefix> parse(std::string_view text);
  [[nodiscard]] bool contains(const IpAddress& candidate) const;
  [[nodiscard]] std::string text() const;

  friend constexpr auto operator<=>(const Prefix&, const Prefix&) = default;
};

}  // namespace holdfast

template <>
struct std::hash<holdfast::IpAddress> {
  std::size_t operator()(const holdfast::IpAddress& address) const noexcept;
};

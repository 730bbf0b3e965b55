// SPDX-License-Identifier: Apache-2.0
// Numbers as operators write them: digits and nothing else. Pure; any thread.
#pragma once

#include <charconv>
#include <concepts>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>

namespace holdfast {

/// `text` as digits of `base`, either case, the whole of it: no sign, no space, no prefix, at least
/// one digit. Leading zeros change nothing. Empty when it is not that, or not a Number.
template <std::integral Number>
[[nodiscard]] std::optional<Number> parse_digits(std::string_view text, int base) {
  if (text.starts_with('-')) return std::nullopt;  // from_chars takes it for a signed Number
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// A whole number from 0 to `most`, in decimal.
template <std::integral Number>
[[nodiscard]] std::optional<Number> parse_decimal(
    std::string_view text, Number most = std::numeric_limits<Number>::max()) {
  const auto value = parse_digits<Number>(text, 10);
  return value && *value <= most ? value : std::nullopt;
}

/// Hexadecimal, without "0x".
template <std::integral Number>
[[nodiscard]] std::optional<Number> parse_hex(std::string_view text) {
  return parse_digits<Number>(text, 16);
}

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
#include "lib/base/printable.h"

#include <fmt/format.h>

#include <array>

namespace holdfast {
namespace {

constexpr std::size_t kMaxPath = 4095;  // PATH_MAX without its zero

struct Character {
  std::size_t length = 0;  // bytes; 0: the text does not begin with UTF-8
  char32_t value = 0;
};

/// Requires: `text` is not empty. RFC 3629.
Character first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto lead = byte(0);
  if (lead < 0x80) return {1, lead};
  if (lead < 0xc2 || lead > 0xf4) return {};
  const std::size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (text.size() < length) return {};
  char32_t value = lead & (0x7fU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    value = value << 6 | (byte(i) & 0x3fU);
  }
  constexpr std::array<char32_t, 5> kSmallest{0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xd800 && value <= 0xdfff;
  if (value < kSmallest.at(length) || value > 0x10ffff || surrogate) return {};
  return {length, value};
}

constexpr bool is_control(char32_t c) { return c < 0x20 || (c >= 0x7f && c < 0xa0); }

/// Controls, line and paragraph separators, and what turns the direction of writing, by which a
/// text can seem to be another one.
constexpr bool steers_a_terminal(char32_t c) {
  return is_control(c) || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) ||
         c == 0x200e || c == 0x200f || c == 0x61c || c == 0xfeff;
}

}  // namespace

std::string printable(std::string_view text, std::size_t most) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    if (i >= most) return result + "...";
    const auto [length, value] = first_of(text.substr(i));
    const auto bytes = text.substr(i, length == 0 ? 1 : length);
    if (length > 0 && !steers_a_terminal(value)) {
      result += bytes;
    } else {
      for (const char byte : bytes)
        result += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    }
    i += bytes.size();
  }
  return result;
}

std::string in_quotes(std::string_view text) { return '"' + printable(text) + '"'; }

std::string printable_path(std::string_view path) {
  return printable(path, path.size() <= kMaxPath ? kMaxPath : kMaxShown);
}

std::string_view find_control(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto [length, value] = first_of(text.substr(i));
    if (length > 0 && is_control(value)) return text.substr(i, length);
    i += length == 0 ? 1 : length;
  }
  return {};
}

}  // namespace holdfast

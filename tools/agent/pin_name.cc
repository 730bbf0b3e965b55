// SPDX-License-Identifier: Apache-2.0
#include "tools/agent/pin_name.h"

#include <fmt/format.h>

#include <cstdint>
#include <optional>

#include "lib/base/digits.h"

namespace holdfast::agent {

std::string to_pin_name(std::string_view interface) {
  std::string result;
  for (const char c : interface) {
    if (c == '.' || c == '%')
      result += fmt::format("%{:02x}", static_cast<unsigned char>(c));
    else
      result += c;
  }
  return result;
}

std::string from_pin_name(std::string_view pin_name) {
  std::string result;
  for (std::size_t i = 0; i < pin_name.size(); ++i) {
    std::optional<std::uint8_t> code;
    if (pin_name[i] == '%' && i + 2 < pin_name.size())
      code = parse_hex<std::uint8_t>(pin_name.substr(i + 1, 2));
    if (code) {
      result += static_cast<char>(*code);
      i += 2;
    } else {
      result += pin_name[i];
    }
  }
  return result;
}

}  // namespace holdfast::agent

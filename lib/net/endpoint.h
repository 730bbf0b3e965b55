// SPDX-License-Identifier: Apache-2.0
// An address with a port, as operators write it. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lib/net/address.h"

namespace holdfast {

struct Endpoint {
  IpAddress address{};
  std::uint16_t port = 0;

  /// "192.0.2.1:443" or "[2001:db8::1]:443" (RFC 3986 section 3.2.2): the port in decimal, 0 to
  /// 65535, without leading zeros. Nothing else.
  [[nodiscard]] static std::optional<Endpoint> parse(std::string_view text);
  [[nodiscard]] std::string text() const;

  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
#include "lib/net/endpoint.h"

#include "lib/base/digits.h"

namespace holdfast {
namespace {

std::optional<std::uint16_t> parse_port(std::string_view text) {
  if (text.size() > 1 && text.front() == '0') return std::nullopt;
  return parse_decimal<std::uint16_t>(text);
}

}  // namespace

std::optional<Endpoint> Endpoint::parse(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  auto host = text.substr(0, colon);
  const bool bracketed = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  const auto address = IpAddress::parse(host);
  const auto port = parse_port(text.substr(colon + 1));
  // Without brackets the last group of an IPv6 address could be taken for the port.
  if (!address || !port || address->is_v4() == bracketed) return std::nullopt;
  return Endpoint{*address, *port};
}

std::string Endpoint::text() const {
  const auto host = address.is_v4() ? address.text() : "[" + address.text() + "]";
  return host + ":" + std::to_string(port);
}

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
#include "lib/config/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "lib/base/digits.h"

namespace holdfast {
namespace {

constexpr bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

}  // namespace

std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) {
  const auto digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto unit = text.substr(digits);
  std::int64_t factor = 0;
  if (unit == "ms") factor = 1;
  if (unit == "s") factor = 1000;
  if (unit == "m") factor = 60 * 1000;
  if (unit == "h") factor = 60 * 60 * 1000;
  const auto count = parse_decimal<std::int64_t>(text.substr(0, digits));
  if (factor == 0 || !count || *count > std::numeric_limits<std::int64_t>::max() / factor)
    return std::nullopt;
  return std::min(std::chrono::milliseconds{*count * factor}, kLongestDuration);
}

namespace config {

std::optional<PortRange> parse_ports(std::string_view text) {
  if (text == "any") return PortRange{};
  const auto dash = text.find('-');
  const auto first = parse_decimal<std::uint16_t>(text.substr(0, dash));
  const auto last =
      dash == std::string_view::npos ? first : parse_decimal<std::uint16_t>(text.substr(dash + 1));
  if (!first || !last || *first == 0 || *first > *last) return std::nullopt;
  return PortRange{*first, *last};
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-' || c == ':';
  });
}

bool is_pci_address(std::string_view text) {
  // "0000:03:00.1" or "03:00.1", hexadecimal.
  const std::string_view form = text.size() == 7 ? "hh:hh.h" : "hhhh:hh:hh.h";
  if (text.size() != form.size()) return false;
  for (std::size_t i = 0; i < form.size(); ++i) {
    const char c = text[i];
    const bool is_hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    if (form[i] == 'h' ? !is_hex : c != form[i]) return false;
  }
  return true;
}

bool is_interface_name(std::string_view text) {
  return !text.empty() && text.size() <= 15 && text != "." && text != ".." &&
         std::none_of(text.begin(), text.end(),
                      [](char c) { return c == '/' || c == ':' || is_space(c); });
}

std::string why_not_unicast(const IpAddress& address) {
  if (address.is_unspecified()) return "the unspecified address";
  if (address.is_loopback()) return "a loopback address";
  if (address.is_multicast()) return "a multicast address";
  if (address.is_link_local()) return "a link-local address";
  if (address.is_reserved_v4()) return "a reserved address";
  if (address.is_v4() && address.bytes()[0] == 0) return "an address of \"this network\"";
  const auto& bytes = address.bytes();
  if (!address.is_v4() &&
      std::all_of(bytes.begin(), bytes.begin() + 10, [](auto b) { return b == 0; }) &&
      bytes[10] == 0xff && bytes[11] == 0xff)
    return "an IPv4 address in IPv6 form (write it as IPv4)";
  return {};
}

std::optional<std::uint32_t> parse_community(std::string_view text) {
  if (text == "graceful-shutdown") return 0xffff'0000;
  if (text == "no-export") return 0xffff'ff01;
  if (text == "no-advertise") return 0xffff'ff02;
  const auto colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto high = parse_decimal<std::uint16_t>(text.substr(0, colon));
  const auto low = parse_decimal<std::uint16_t>(text.substr(colon + 1));
  if (!high || !low) return std::nullopt;
  return std::uint32_t{*high} << 16 | *low;
}

bool is_host_and_port(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return false;
  const auto port = parse_decimal<std::uint16_t>(text.substr(colon + 1));
  if (!port || *port == 0) return false;
  const auto host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    const auto address = IpAddress::parse(host.substr(1, host.size() - 2));
    return address && !address->is_v4();
  }
  return !host.empty() && host.size() <= 253 && std::all_of(host.begin(), host.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
  });
}

std::string duration_text(std::chrono::milliseconds duration) {
  const auto count = duration.count();
  if (count != 0 && count % 3'600'000 == 0) return fmt::format("{}h", count / 3'600'000);
  if (count != 0 && count % 60'000 == 0) return fmt::format("{}m", count / 60'000);
  if (count % 1000 == 0) return fmt::format("{}s", count / 1000);
  return fmt::format("{}ms", count);
}

}  // namespace config
}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
#include "lib/net/address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <xxhash.h>

#include <cstring>

#include "lib/base/digits.h"

namespace holdfast {

std::optional<IpAddress> IpAddress::parse(std::string_view text) {
  // inet_pton wants a terminated string; an address with an embedded NUL is no address.
  if (text.size() > INET6_ADDRSTRLEN || text.find('\0') != text.npos) return std::nullopt;
  const std::string terminated(text);
  Bytes bytes{};
  if (inet_pton(AF_INET, terminated.c_str(), bytes.data()) == 1) {
    IpAddress result;
    result.bytes_ = bytes;
    return result;
  }
  if (inet_pton(AF_INET6, terminated.c_str(), bytes.data()) == 1) return v6(bytes);
  return std::nullopt;
}

bool IpAddress::is_loopback() const {
  if (is_v4()) return bytes_[0] == 127;
  Bytes one{};
  one[15] = 1;
  return bytes_ == one;
}

bool IpAddress::is_multicast() const {
  return is_v4() ? (bytes_[0] & 0xf0) == 0xe0 : bytes_[0] == 0xff;
}

bool IpAddress::is_reserved_v4() const { return is_v4() && bytes_[0] >= 240; }

bool IpAddress::is_link_local() const {
  return is_v4() ? bytes_[0] == 169 && bytes_[1] == 254
                 : bytes_[0] == 0xfe && (bytes_[1] & 0xc0) == 0x80;
}

std::string IpAddress::text() const {
  std::array<char, INET6_ADDRSTRLEN> buffer{};
  inet_ntop(is_v4() ? AF_INET : AF_INET6, bytes_.data(), buffer.data(), buffer.size());
  return buffer.data();
}

std::optional<MacAddress> MacAddress::parse(std::string_view text) {
  if (text.size() != 17) return std::nullopt;
  MacAddress result;
  for (std::size_t i = 0; i < 6; ++i) {
    const auto byte = parse_hex<std::uint8_t>(text.substr(i * 3, 2));
    if (!byte || (i < 5 && text[i * 3 + 2] != ':')) return std::nullopt;
    result.bytes[i] = *byte;
  }
  return result;
}

std::string MacAddress::text() const { return fmt::format("{:02x}", fmt::join(bytes, ":")); }

namespace {

std::uint8_t width(const IpAddress& address) { return address.is_v4() ? 32 : 128; }

bool bit(const IpAddress& address, unsigned index) {
  return (address.bytes()[index / 8] >> (7 - index % 8) & 1) != 0;
}

}  // namespace

std::optional<Prefix> Prefix::parse(std::string_view text) {
  const auto slash = text.find('/');
  const auto address = IpAddress::parse(text.substr(0, slash));
  if (!address) return std::nullopt;
  if (slash == text.npos) return Prefix{*address, width(*address)};
  const auto length = parse_decimal<std::uint8_t>(text.substr(slash + 1), width(*address));
  if (!length) return std::nullopt;
  for (unsigned i = *length; i < width(*address); ++i)
    if (bit(*address, i)) return std::nullopt;
  return Prefix{*address, *length};
}

bool Prefix::contains(const IpAddress& candidate) const {
  if (candidate.family() != address.family()) return false;
  const auto& mine = address.bytes();
  const auto& theirs = candidate.bytes();
  const std::size_t whole = length / 8;
  if (std::memcmp(mine.data(), theirs.data(), whole) != 0) return false;
  const unsigned rest = length % 8;
  if (rest == 0) return true;
  const auto mask = static_cast<std::uint8_t>(0xff << (8 - rest));
  return (mine[whole] & mask) == (theirs[whole] & mask);
}

std::string Prefix::text() const { return fmt::format("{}/{}", address.text(), length); }

}  // namespace holdfast

std::size_t std::hash<holdfast::IpAddress>::operator()(
    const holdfast::IpAddress& address) const noexcept {
  return XXH3_64bits_withSeed(address.bytes().data(), address.bytes().size(),
                              static_cast<XXH64_hash_t>(address.family()));
}

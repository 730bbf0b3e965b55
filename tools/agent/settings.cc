// SPDX-License-Identifier: Apache-2.0
#include "tools/agent/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "lib/base/printable.h"

namespace holdfast::agent {
namespace {

constexpr unsigned kFamilyBits = 32;

template <class T>
void sort_and_unite(std::vector<T>& list) {
  std::ranges::sort(list);
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

tl::unexpected<Error> usage(std::string message) { return fail(std::move(message), {}, "usage"); }

template <class T>
Result<std::vector<T>> read_list(std::string_view option, const std::vector<std::string>& words,
                                 std::size_t most, std::string_view form) {
  std::vector<T> list;
  for (const auto& word : words) {
    const auto value = T::parse(word);
    if (!value)
      return usage(
          fmt::format("{} {}: not {}", option, word.empty() ? "\"\"" : printable(word), form));
    list.push_back(*value);
  }
  sort_and_unite(list);
  if (list.size() > most)
    return usage(
        fmt::format("{}: {} different ones, at most {} are possible", option, list.size(), most));
  return list;
}

Result<std::vector<IpAddress>> read_addresses(std::string_view option,
                                              const std::vector<std::string>& words,
                                              std::size_t most) {
  auto list = read_list<IpAddress>(option, words, most,
                                   "an IPv4 or IPv6 address (example: 192.0.2.1 or 2001:db8::1)");
  if (!list) return list;
  for (const auto& address : *list)
    if (address.is_unspecified() || address.is_multicast() || address.is_loopback() ||
        address.is_reserved_v4())
      return usage(fmt::format("{} {}: not the address of one host", option, address.text()));
  return list;
}

}  // namespace

Result<DecapSettings> read_settings(const std::vector<std::string>& vips,
                                    const std::vector<std::string>& lbs,
                                    const std::vector<std::string>& locals) {
  auto vip_list = read_addresses("--vip", vips, HOLDFAST_MAX_VIPS);
  if (!vip_list) return tl::unexpected(vip_list.error());
  auto lb_list =
      read_list<Prefix>("--lb", lbs, HOLDFAST_MAX_LB_PREFIXES,
                        "an address or prefix without host bits (example: 192.0.2.0/24)");
  if (!lb_list) return tl::unexpected(lb_list.error());
  auto local_list = read_addresses("--local", locals, HOLDFAST_MAX_LOCAL_ADDRESSES);
  if (!local_list) return tl::unexpected(local_list.error());
  return DecapSettings{std::move(*vip_list), std::move(*lb_list), std::move(*local_list)};
}

std::string warning_of(const DecapSettings& settings) {
  std::string any;
  for (const auto& lb : settings.lbs)
    if (lb.length == 0) any += (any.empty() ? "--lb " : " and --lb ") + lb.text();
  if (any.empty()) return {};
  return fmt::format(
      "with {} anybody may send tunnels and so forge any client: name the load balancers' own "
      "addresses",
      any);
}

holdfast_address to_key(const IpAddress& address) {
  holdfast_address key{};
  key.family = Be32::from_host(static_cast<std::uint32_t>(address.family())).raw();
  std::memcpy(key.bytes, address.bytes().data(), sizeof(key.bytes));
  return key;
}

holdfast_prefix to_key(const Prefix& prefix) {
  return {.length = kFamilyBits + prefix.length, .address = to_key(prefix.address)};
}

IpAddress from_key(const holdfast_address& key) {
  IpAddress::Bytes bytes{};
  std::memcpy(bytes.data(), key.bytes, bytes.size());
  const auto family = std::bit_cast<Be32>(key.family).host();
  if (family == static_cast<std::uint32_t>(Family::ipv6)) return IpAddress::v6(bytes);
  return IpAddress::v4(std::bit_cast<Be32>(std::array{bytes[0], bytes[1], bytes[2], bytes[3]}));
}

Prefix from_key(const holdfast_prefix& key) {
  return {from_key(key.address), static_cast<std::uint8_t>(key.length - kFamilyBits)};
}

}  // namespace holdfast::agent

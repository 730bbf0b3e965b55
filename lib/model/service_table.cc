// SPDX-License-Identifier: Apache-2.0
#include "lib/model/service_table.h"

#include <algorithm>
#include <bit>

namespace holdfast {

namespace {

/// Width first, so that narrower rules are painted over wider ones: any, then ranges, then exact.
std::vector<ServiceRule> widest_first(std::span<const ServiceRule> rules) {
  std::vector<ServiceRule> sorted(rules.begin(), rules.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.ports.last - a.ports.first > b.ports.last - b.ports.first;
  });
  return sorted;
}

}  // namespace

std::string PortRange::text() const {
  if (is_any()) return "any";
  const auto from = std::to_string(first);
  return first == last ? from : from + "-" + std::to_string(last);
}

ServiceTable::ServiceTable(std::span<const VipEntry> vips, std::span<const ServiceRule> rules) {
  std::vector<IpAddress> addresses;
  for (const VipEntry& vip : vips) addresses.push_back(vip.address);
  for (const ServiceRule& rule : rules) addresses.push_back(rule.vip);
  std::sort(addresses.begin(), addresses.end());
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());

  slots_.resize(std::bit_ceil(std::max<std::size_t>(8, addresses.size() * 2)));
  mask_ = slots_.size() - 1;
  for (const IpAddress& address : addresses) {
    std::size_t i = std::hash<IpAddress>{}(address)&mask_;
    while (slots_[i].used) i = (i + 1) & mask_;
    slots_[i].used = true;
    slots_[i].address = address;
  }

  for (const VipEntry& vip : vips) const_cast<Vip*>(find(vip.address))->options = vip.options;

  fill_filter(addresses);

  const auto paint = [](std::vector<Interval>& intervals, PortRange ports, ServiceNumber service) {
    if (intervals.empty()) intervals.push_back({0, kNoService});
    // Split at both ends, then repaint what lies between.
    const auto split = [&intervals](std::uint16_t at) {
      const auto next = std::upper_bound(
          intervals.begin(), intervals.end(), at,
          [](std::uint16_t port, const Interval& interval) { return port < interval.first; });
      const auto current = next - 1;
      if (current->first == at) return;
      intervals.insert(next, {at, current->service});
    };
    split(ports.first);
    if (ports.last != 65535) split(static_cast<std::uint16_t>(ports.last + 1));
    for (Interval& interval : intervals)
      if (ports.contains(interval.first)) interval.service = service;
  };
  add_exact(rules);
  for (const ServiceRule& rule : widest_first(rules)) {
    auto* vip = const_cast<Vip*>(find(rule.vip));
    if (rule.protocol == IpProtocol::tcp) paint(vip->tcp, rule.ports, rule.service);
    if (rule.protocol == IpProtocol::udp) paint(vip->udp, rule.ports, rule.service);
  }
}

void ServiceTable::fill_filter(std::span<const IpAddress> addresses) {
  const std::size_t bits = std::bit_ceil(std::max<std::size_t>(64, addresses.size() * 16));
  filter_.assign(bits / 64, 0);
  filter_shift_ = 64u - static_cast<unsigned>(std::countr_zero(bits));
  for (const IpAddress& address : addresses) {
    const ExactRule bytes = exact_rule(address, IpProtocol::tcp, Be16{});
    const std::uint64_t bit = filter_bit(bytes.high, bytes.low);
    filter_[bit / 64] |= std::uint64_t{1} << bit % 64;
  }
}

const ServiceTable::Vip* ServiceTable::find(const IpAddress& address) const {
  if (slots_.empty()) return nullptr;
  for (std::size_t i = std::hash<IpAddress>{}(address)&mask_;; i = (i + 1) & mask_) {
    const Vip& vip = slots_[i];
    if (!vip.used) return nullptr;
    if (vip.address == address) return &vip;
  }
}

void ServiceTable::add_exact(std::span<const ServiceRule> rules) {
  const auto count = static_cast<std::size_t>(std::ranges::count_if(
      rules, [](const ServiceRule& rule) { return rule.ports.first == rule.ports.last; }));
  exact_.assign(std::bit_ceil(count * 2 + 1), {});
  exact_mask_ = exact_.size() - 1;
  for (const ServiceRule& rule : rules) {
    if (rule.ports.first != rule.ports.last) continue;
    ExactRule exact = exact_rule(rule.vip, rule.protocol, Be16::from_host(rule.ports.first));
    exact.service = rule.service;
    std::size_t i = place_of(exact);
    while (exact_[i].service != kNoService) i = (i + 1) & exact_mask_;
    exact_[i] = exact;
  }
}

ServiceTable::Match ServiceTable::lookup_interval(const IpAddress& destination, IpProtocol protocol,
                                                  Be16 port) const {
  const Vip* vip = find(destination);
  if (vip == nullptr) return {};
  const auto& intervals = protocol == IpProtocol::tcp ? vip->tcp : vip->udp;
  const bool has_ports = protocol == IpProtocol::tcp || protocol == IpProtocol::udp;
  if (!has_ports || intervals.empty()) return {.is_vip = true, .options = vip->options};
  const auto next = std::upper_bound(
      intervals.begin(), intervals.end(), port.host(),
      [](std::uint16_t wanted, const Interval& interval) { return wanted < interval.first; });
  return {.is_vip = true, .service = (next - 1)->service, .options = vip->options};
}

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// What appears twice: names and addresses. Values whose place is unknown were reported when they
// were parsed and are left alone here.
#include <fmt/format.h>

#include <map>
#include <optional>
#include <string_view>

#include "lib/config/sections.h"

namespace holdfast::config {
namespace {

/// Where each value was first seen; says so of every later one.
template <class Value>
class FirstSeen {
 public:
  /// The place of an earlier equal value, or an unknown place.
  Place earlier(const Value& value, Place place) {
    if (!place.known()) return {};
    const auto [it, is_new] = seen_.try_emplace(value, place);
    return is_new ? Place{} : it->second;
  }
  [[nodiscard]] Place find(const Value& value) const {
    const auto it = seen_.find(value);
    return it == seen_.end() ? Place{} : it->second;
  }

 private:
  std::map<Value, Place> seen_;
};

template <class Items, class GetName, class GetPlace>
void report_twins(std::string_view kind, const Items& items, GetName name, GetPlace place,
                  Faults& faults) {
  FirstSeen<std::string_view> seen;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string_view text = name(items[i]);
    if (text.empty()) continue;
    const auto earlier = seen.earlier(text, place(i));
    if (earlier.known())
      faults.add(place(i), fmt::format("there is another {} {} in line {}", kind, in_quotes(text),
                                       earlier.line));
  }
}

}  // namespace

void check_names(Parse& parse) {
  const auto& config = parse.config;
  const auto& places = parse.places;
  using Text = std::string_view;
  const auto name = [](const auto& item) -> Text { return item.name; };
  const auto& ports = config.dataplane.ports;
  report_twins(
      "port", ports, name, [&](auto i) { return places.ports[i].name; }, parse.faults);
  report_twins(
      "port with interface", ports, [](const auto& port) -> Text { return port.interface; },
      [&](auto i) { return places.ports[i].interface; }, parse.faults);
  report_twins(
      "port with pci", ports, [](const auto& port) -> Text { return port.pci; },
      [&](auto i) { return places.ports[i].pci; }, parse.faults);
  report_twins(
      "port with vdev", ports,
      [](const auto& port) { return Text{port.vdev}.substr(0, port.vdev.find(',')); },
      [&](auto i) { return places.ports[i].vdev; }, parse.faults);
  report_twins(
      "service", config.services, name, [&](auto i) { return places.services[i].name; },
      parse.faults);
  report_twins(
      "pool", config.pools, name, [&](auto i) { return places.pools[i].name; }, parse.faults);
  report_twins(
      "check", config.checks, name, [&](auto i) { return places.checks[i]; }, parse.faults);
}

void check_addresses(Parse& parse) {
  const auto& config = parse.config;
  const auto& places = parse.places;
  FirstSeen<IpAddress> vips;
  for (std::size_t i = 0; i < config.vips.size(); ++i) {
    const auto earlier = vips.earlier(config.vips[i].address, places.vips[i]);
    if (earlier.known())
      parse.faults.add(places.vips[i], fmt::format("VIP {} is in line {} already",
                                                   config.vips[i].address.text(), earlier.line));
  }
  const auto refuse_vip = [&](const IpAddress& address, Place place, std::string_view use) {
    const auto vip = vips.find(address);
    if (!place.known() || !vip.known()) return;
    parse.faults.add(place, fmt::format("{} can not be {}: it is a VIP (line {})", address.text(),
                                        use, vip.line));
  };
  const auto& dataplane = config.dataplane;
  if (dataplane.tunnel_source_v4)
    refuse_vip(*dataplane.tunnel_source_v4, places.tunnel_source_v4, "the tunnels' source");
  if (dataplane.tunnel_source_v6)
    refuse_vip(*dataplane.tunnel_source_v6, places.tunnel_source_v6, "the tunnels' source");
  if (config.bgp && config.bgp->next_hop)
    refuse_vip(*config.bgp->next_hop, places.next_hop, "the next hop of VIPs");
  if (config.bgp && config.bgp->next_hop_v6)
    refuse_vip(*config.bgp->next_hop_v6, places.next_hop_v6, "the next hop of VIPs");

  const auto refuse_in_spread = [&](const IpAddress& address, Place place, std::string_view what) {
    const auto& spread = address.is_v4() ? dataplane.ipip_spread_v4 : dataplane.ipip_spread_v6;
    if (!place.known() || !spread || !spread->contains(address)) return;
    const Place at = address.is_v4() ? places.ipip_spread_v4 : places.ipip_spread_v6;
    parse.faults.add(place,
                     fmt::format("{} can not be {}: the tunnels' sources are in {} (line {})",
                                 address.text(), what, spread->text(), at.line));
  };
  for (std::size_t i = 0; i < config.vips.size(); ++i)
    refuse_in_spread(config.vips[i].address, places.vips[i], "a VIP");

  const auto refuse_own = [&](const BackendConfig& backend, Place place,
                              const std::optional<IpAddress>& source, Place source_place) {
    if (!place.known() || source != backend.address) return;
    parse.faults.add(place, fmt::format("{} can not be a backend: it is this load balancer's own "
                                        "address, the tunnels' source (line {})",
                                        backend.address.text(), source_place.line));
  };

  std::map<std::string_view, const BackendConfig*> by_name;
  for (std::size_t p = 0; p < config.pools.size(); ++p) {
    const auto& pool = config.pools[p];
    FirstSeen<IpAddress> addresses;
    for (std::size_t b = 0; b < pool.backends.size(); ++b) {
      const auto& backend = pool.backends[b];
      const auto& at = places.pools[p].backends[b];
      refuse_vip(backend.address, at.address, "a backend");
      refuse_in_spread(backend.address, at.address, "a backend");
      refuse_own(backend, at.address, dataplane.tunnel_source_v4, places.tunnel_source_v4);
      refuse_own(backend, at.address, dataplane.tunnel_source_v6, places.tunnel_source_v6);
      const auto earlier = addresses.earlier(backend.address, at.address);
      if (earlier.known())
        parse.faults.add(at.address,
                         fmt::format("backend {} is in pool {} already (line {})",
                                     backend.address.text(), in_quotes(pool.name), earlier.line));
      if (!at.address.known()) continue;
      const auto [first, is_new] = by_name.try_emplace(backend.name, &backend);
      if (!is_new && first->second->address != backend.address)
        parse.faults.add(at.name.known() ? at.name : at.address,
                         fmt::format("the name {} belongs to backend {} already",
                                     in_quotes(backend.name), first->second->address.text()));
      const auto as_address = IpAddress::parse(backend.name);
      if (as_address && *as_address != backend.address)
        parse.faults.add(at.name, fmt::format("backend {} can not be named after another address, "
                                              "{}",
                                              backend.address.text(), in_quotes(backend.name)));
    }
  }
}

}  // namespace holdfast::config

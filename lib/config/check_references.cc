// SPDX-License-Identifier: Apache-2.0
// What services, pools and checks say of each other: references that must exist, ports that must
// not overlap, ways to backends that can be found. Values whose place is unknown were reported when
// they were parsed and are left alone.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "lib/config/sections.h"
#include "lib/model/numbers.h"

namespace holdfast::config {
namespace {

/// Names of things, for "does not exist; did you mean".
class NameList {
 public:
  template <class Items>
  explicit NameList(const Items& items) {
    for (const auto& item : items) {
      all_.push_back(item.name);
      set_.insert(item.name);
    }
  }
  void require(std::string_view kind, std::string_view name, Place place, Faults& faults) const {
    if (!place.known() || set_.contains(name)) return;
    faults.add(place,
               fmt::format("there is no {} {}{}", kind, in_quotes(name), suggestion(name, all_)));
  }

 private:
  std::vector<std::string_view> all_;
  std::set<std::string_view> set_;
};

/// Exact ports, ranges and "any" may overlap each other (the narrower wins), but not their own
/// kind.
enum class RuleKind : std::uint8_t { exact, range, any };

struct Rule {
  IpAddress vip;
  IpProtocol protocol;
  RuleKind kind;
  PortRange ports;
  std::size_t service;

  [[nodiscard]] auto order() const { return std::tie(vip, protocol, kind, ports, service); }
};

RuleKind kind_of(const PortRange& ports) {
  if (ports.is_any()) return RuleKind::any;
  return ports.first == ports.last ? RuleKind::exact : RuleKind::range;
}

std::string ports_text(const PortRange& ports) {
  if (ports.is_any()) return "any port";
  if (ports.first == ports.last) return fmt::format("port {}", ports.first);
  return fmt::format("ports {}-{}", ports.first, ports.last);
}

void report_overlap(const Rule& a, const Rule& b, Parse& parse) {
  const auto& earlier = a.service < b.service ? a : b;
  const auto& later = a.service < b.service ? b : a;
  const auto& places = parse.places.services;
  const auto& services = parse.config.services;
  const auto protocol = later.protocol == IpProtocol::tcp ? "TCP" : "UDP";
  parse.faults.add(places[later.service].ports,
                   fmt::format("{} {} of VIP {} {} service {} already ({}, line {})", protocol,
                               ports_text(later.ports), later.vip.text(),
                               later.kind == RuleKind::range ? "overlap" : "belongs to",
                               in_quotes(services[earlier.service].name), ports_text(earlier.ports),
                               places[earlier.service].ports.line));
}

void check_overlaps(Parse& parse) {
  std::vector<Rule> rules;
  for (std::size_t s = 0; s < parse.config.services.size(); ++s) {
    if (!parse.places.services[s].ports.known()) continue;
    const auto& service = parse.config.services[s];
    const std::set<IpAddress> vips(service.vips.begin(), service.vips.end());
    for (const auto& vip : vips)
      rules.push_back({vip, service.protocol, kind_of(service.ports), service.ports, s});
  }
  std::sort(rules.begin(), rules.end(),
            [](const auto& a, const auto& b) { return a.order() < b.order(); });
  // Of each (VIP, protocol, kind), `widest` is the rule seen so far that reaches furthest up.
  const Rule* widest = nullptr;
  for (const auto& rule : rules) {
    const bool same_group = widest != nullptr && widest->vip == rule.vip &&
                            widest->protocol == rule.protocol && widest->kind == rule.kind;
    if (same_group && rule.ports.first <= widest->ports.last) report_overlap(*widest, rule, parse);
    if (!same_group || rule.ports.last > widest->ports.last) widest = &rule;
  }
}

void check_service_vips(const ServiceConfig& service, const ServicePlaces& places,
                        const std::set<IpAddress>& vips, Faults& faults) {
  std::set<IpAddress> seen;
  for (std::size_t i = 0; i < service.vips.size(); ++i) {
    const auto& vip = service.vips[i];
    if (!vips.contains(vip))
      faults.add(places.vips[i],
                 fmt::format("{} is not a VIP: there is no [[vip]] with this address", vip.text()));
    if (!seen.insert(vip).second)
      faults.add(places.vips[i], fmt::format("VIP {} is in the list already", vip.text()));
  }
}

/// A direct check needs a port: its own, or that of the first service that uses the pool.
void check_check_port(const PoolConfig& pool, const PoolPlaces& places, Parse& parse) {
  const auto* check = parse.config.check(pool.check);
  if (!places.check.known() || check == nullptr || check->port) return;
  const auto& services = parse.config.services;
  const auto service = std::find_if(services.begin(), services.end(),
                                    [&](const auto& s) { return s.pool == pool.name; });
  if (service == services.end()) {
    parse.faults.add(places.check,
                     fmt::format("check {} needs a \"port\": no service uses pool {}, so there is "
                                 "none to take it from",
                                 in_quotes(check->name), in_quotes(pool.name)));
    return;
  }
  const auto index = static_cast<std::size_t>(service - services.begin());
  if (service->ports.is_any() && parse.places.services[index].ports.known())
    parse.faults.add(
        places.check,
        fmt::format("check {} needs a \"port\": service {}, the first that uses pool "
                    "{}, has ports = \"any\"",
                    in_quotes(check->name), in_quotes(service->name), in_quotes(pool.name)));
}

/// Ways to backends come from the kernel's routes by a port on a kernel interface, or from
/// "next_hop", which brings no address that could be the tunnel's source.
class PathChecks {
 public:
  explicit PathChecks(Parse& parse) : parse_(parse) {
    const auto& ports = parse.config.dataplane.ports;
    // A port without a device is reported already.
    no_kernel_ = !ports.empty() && std::all_of(ports.begin(), ports.end(), [](const auto& port) {
      return port.interface.empty() && !(port.vdev.empty() && port.pci.empty());
    });
  }

  void check(const BackendConfig& backend, const BackendPlaces& at, const PoolConfig& pool) {
    if (!at.address.known()) return;
    if (!at.next_hop.known()) {
      if (no_kernel_)
        parse_.faults.add(at.self,
                          fmt::format("backend {} of pool {} needs a \"next_hop\": no port is a "
                                      "kernel interface, so no route leads to it",
                                      in_quotes(backend.name), in_quotes(pool.name)));
      return;
    }
    if (!at.next_hop_good) return;
    const bool v4 = backend.address.is_v4();
    const auto& source = v4 ? parse_.places.tunnel_source_v4 : parse_.places.tunnel_source_v6;
    auto& told = v4 ? told_v4_ : told_v6_;
    if (source.known() || std::exchange(told, true)) return;
    parse_.faults.add(
        at.next_hop,
        fmt::format("[dataplane] needs \"tunnel_source_{}\": backend {} of pool {} has "
                    "a \"next_hop\", so no interface gives its tunnel a source",
                    v4 ? "v4" : "v6", in_quotes(backend.name), in_quotes(pool.name)));
  }

 private:
  Parse& parse_;
  bool no_kernel_ = false;
  bool told_v4_ = false;  // one fault a family: one key mends all
  bool told_v6_ = false;
};

}  // namespace

void check_services(Parse& parse) {
  const NameList pools{parse.config.pools};
  std::set<IpAddress> vips;
  for (const auto& vip : parse.config.vips) vips.insert(vip.address);
  for (std::size_t s = 0; s < parse.config.services.size(); ++s) {
    const auto& service = parse.config.services[s];
    const auto& places = parse.places.services[s];
    check_service_vips(service, places, vips, parse.faults);
    pools.require("pool", service.pool, places.pool, parse.faults);
  }
  check_overlaps(parse);
  if (parse.config.services.size() > kMaxNumbers)
    parse.faults.add(parse.places.services[kMaxNumbers].self,
                     fmt::format("there are {} services; at most {} are possible",
                                 parse.config.services.size(), kMaxNumbers));
}

void check_pools(Parse& parse) {
  const NameList checks{parse.config.checks};
  const NameList ports{parse.config.dataplane.ports};
  PathChecks paths{parse};
  std::size_t memberships = 0;
  for (std::size_t p = 0; p < parse.config.pools.size(); ++p) {
    const auto& pool = parse.config.pools[p];
    const auto& places = parse.places.pools[p];
    checks.require("check", pool.check, places.check, parse.faults);
    check_check_port(pool, places, parse);
    for (std::size_t b = 0; b < pool.backends.size(); ++b) {
      const auto& at = places.backends[b];
      const auto faults_before = parse.faults.count();
      if (pool.backends[b].next_hop)
        ports.require("port", pool.backends[b].next_hop->port, at.next_hop_port, parse.faults);
      if (parse.faults.count() == faults_before) paths.check(pool.backends[b], at, pool);
      if (memberships++ == kMaxNumbers)
        parse.faults.add(at.self,
                         fmt::format("the pools have more than {} backends together", kMaxNumbers));
    }
    if (pool.table_size < pool.backends.size())
      parse.faults.add(places.table_size.known() ? places.table_size : places.self,
                       fmt::format("pool {} has {} backends but a table of only {} slots",
                                   in_quotes(pool.name), pool.backends.size(), pool.table_size));
  }
}

}  // namespace holdfast::config

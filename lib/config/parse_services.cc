// SPDX-License-Identifier: Apache-2.0
// [[vip]] and [[service]].
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "lib/config/sections.h"
#include "lib/config/values.h"

namespace holdfast::config {
namespace {

void parse_timeout(TableReader& reader, std::string_view key, std::chrono::seconds& timeout) {
  const auto value = reader.duration(key, std::chrono::seconds{1}, kMaxFlowTimeout);
  if (!value) return;
  timeout = std::chrono::duration_cast<std::chrono::seconds>(*value);
  if (timeout != *value) reader.fault(key, fmt::format("\"{}\" must be whole seconds", key));
}

void parse_timeouts(TableReader& service, FlowTimeouts& timeouts, Faults& faults) {
  const auto* table = service.table("timeouts");
  if (table == nullptr) return;
  TableReader reader{*table, fmt::format("the timeouts of {}", service.what()), faults};
  parse_timeout(reader, "embryonic", timeouts.embryonic);
  parse_timeout(reader, "established", timeouts.established);
  parse_timeout(reader, "closing", timeouts.closing);
  parse_timeout(reader, "udp", timeouts.udp);
  reader.finish();
}

void parse_ports_key(TableReader& reader, ServiceConfig& service, ServicePlaces& places) {
  reader.require("ports", "\"443\", \"8000-8999\" or \"any\"");
  const auto text = reader.text("ports");
  if (!text) return;
  const auto ports = parse_ports(*text);
  if (!ports) {
    reader.fault("ports", fmt::format("\"ports\" must be one port such as \"443\", a range such as "
                                      "\"8000-8999\", or \"any\", not {}",
                                      in_quotes(*text)));
    return;
  }
  service.ports = *ports;
  places.ports = reader.place("ports");
}

/// A key that means something for one protocol only.
void require_protocol(TableReader& reader, const ServiceConfig& service, std::string_view key,
                      IpProtocol wanted) {
  if (!reader.has(key) || service.protocol == wanted) return;
  const bool udp = wanted == IpProtocol::udp;
  reader.fault(key, fmt::format("\"{}\" is for services with protocol = \"{}\"; {} has \"{}\"", key,
                                udp ? "udp" : "tcp", reader.what(), udp ? "tcp" : "udp"));
}

void parse_protocol(TableReader& reader, ServiceConfig& service) {
  const auto protocol =
      reader.choice<IpProtocol>("protocol", {{"tcp", IpProtocol::tcp}, {"udp", IpProtocol::udp}});
  if (protocol) service.protocol = *protocol;
  if (const auto stateless = reader.choice<bool>("udp", {{"flow", false}, {"stateless", true}})) {
    service.stateless = *stateless;
    require_protocol(reader, service, "udp", IpProtocol::udp);
  }
  if (const auto repick =
          reader.choice<bool>("udp_on_drain", {{"keep", false}, {"repick", true}})) {
    service.udp_repick_on_drain = *repick;
    require_protocol(reader, service, "udp_on_drain", IpProtocol::udp);
    if (service.stateless && service.protocol == IpProtocol::udp)
      reader.fault("udp_on_drain",
                   fmt::format("\"udp_on_drain\" does nothing for {}, which has udp = "
                               "\"stateless\": each packet goes to a backend that takes new flows",
                               reader.what()));
  }
  if (const auto clamp = reader.integer("mss_clamp", kMinMssClamp, kMaxMssClamp)) {
    service.mss_clamp = static_cast<std::uint16_t>(*clamp);
    require_protocol(reader, service, "mss_clamp", IpProtocol::tcp);
  }
}

void parse_communities(TableReader& reader, VipConfig& vip, Faults& faults) {
  // An UPDATE has 4096 bytes for everything.
  constexpr std::size_t kMost = 64;
  auto& communities = vip.communities;
  for (const auto& [text, place] : reader.texts("communities")) {
    const auto community = parse_community(text);
    if (!community) {
      faults.add(place, fmt::format("{} is not a community such as \"64512:100\", "
                                    "\"graceful-shutdown\", \"no-export\" or \"no-advertise\"",
                                    in_quotes(text)));
      continue;
    }
    const auto at = std::lower_bound(communities.begin(), communities.end(), *community);
    if (at != communities.end() && *at == *community) {
      faults.add(place, fmt::format("community {} is in the list already", in_quotes(text)));
    } else {
      communities.insert(at, *community);
    }
  }
  if (communities.size() > kMost)
    reader.fault("communities", fmt::format("{} has {} communities; at most {} are possible",
                                            reader.what(), communities.size(), kMost));
}

/// How a VIP is announced. Without [bgp] these keys would do nothing, so they are faults.
void parse_announcement(TableReader& reader, VipConfig& vip, bool has_bgp, Faults& faults) {
  if (const auto announce = reader.boolean("announce")) vip.announce = *announce;
  parse_communities(reader, vip, faults);
  if (const auto prepend = reader.integer("prepend", 0, 10))
    vip.prepend = static_cast<std::uint8_t>(*prepend);
  if (const auto med = reader.integer("med", 0, std::numeric_limits<std::uint32_t>::max()))
    vip.med = static_cast<std::uint32_t>(*med);
  if (has_bgp) return;
  for (const auto* key : {"announce", "communities", "prepend", "med"}) {
    if (reader.has(key))
      reader.fault(key, fmt::format("\"{}\" of {} does nothing without a section [bgp]", key,
                                    reader.what()));
  }
}

void parse_service(const toml::table& table, Parse& parse) {
  TableReader reader{table, "a service", parse.faults};
  ServiceConfig service;
  ServicePlaces places{.self = reader.place()};
  places.name = reader.own_name("service", service.name);

  reader.require("vips", "a list of addresses of [[vip]]");
  for (const auto& [value, place] : reader.texts("vips")) {
    const auto address = read_address(value, place, parse.faults);
    if (!address) continue;
    service.vips.push_back(*address);
    places.vips.push_back(place);
  }
  if (reader.is_empty_list("vips"))
    reader.fault("vips", fmt::format("{} needs at least one VIP", reader.what()));

  parse_protocol(reader, service);
  parse_ports_key(reader, service, places);
  reader.require("pool");
  if (auto pool = reader.text("pool")) {
    service.pool = *std::move(pool);
    places.pool = reader.place("pool");
  }
  if (const auto share = reader.share("max_share")) service.max_share = *share;
  if (const auto share = reader.share("embryonic_share")) service.embryonic_share = *share;
  parse_timeouts(reader, service.timeouts, parse.faults);
  reader.finish();
  parse.config.services.push_back(std::move(service));
  parse.places.services.push_back(std::move(places));
}

}  // namespace

void parse_vips(TableReader& root, Parse& parse) {
  for (const auto* table : root.tables("vip", "write [[vip]]")) {
    TableReader reader{*table, "a VIP", parse.faults};
    VipConfig vip;
    reader.require("address");
    const auto address = reader.address("address");
    if (address) reader.rename("VIP " + address->text());
    parse_announcement(reader, vip, root.has("bgp"), parse.faults);
    if (const auto echo = reader.boolean("echo")) vip.echo = *echo;
    const auto reject = reader.choice<bool>("unknown_port", {{"drop", false}, {"reject", true}});
    if (reject) vip.reject_unknown_port = *reject;
    reader.finish();
    if (!address) continue;
    vip.address = *address;
    parse.config.vips.push_back(std::move(vip));
    parse.places.vips.push_back(reader.place("address"));
  }
}

void parse_services(TableReader& root, Parse& parse) {
  for (const auto* table : root.tables("service", "write [[service]]"))
    parse_service(*table, parse);
}

}  // namespace holdfast::config

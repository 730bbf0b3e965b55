// SPDX-License-Identifier: Apache-2.0
// [[vip]] and [[service]].
#include <fmt/format.h>

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

void parse_protocol(TableReader& reader, ServiceConfig& service) {
  const auto protocol =
      reader.choice<IpProtocol>("protocol", {{"tcp", IpProtocol::tcp}, {"udp", IpProtocol::udp}});
  if (protocol) service.protocol = *protocol;
  const auto repick = reader.choice<bool>("udp_on_drain", {{"keep", false}, {"repick", true}});
  if (!repick) return;
  service.udp_repick_on_drain = *repick;
  if (service.protocol != IpProtocol::udp)
    reader.fault("udp_on_drain", fmt::format("\"udp_on_drain\" is for services with protocol = "
                                             "\"udp\"; {} has \"tcp\"",
                                             reader.what()));
}

void parse_service(const toml::table& table, Parse& parse) {
  TableReader reader{table, "a service", parse.faults};
  ServiceConfig service;
  ServicePlaces places{.self = reader.place()};
  reader.require("name");
  if (auto name = reader.name("name")) {
    reader.rename("service " + in_quotes(*name));
    service.name = *std::move(name);
    places.name = reader.place("name");
  }

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
    reader.require("address");
    if (const auto address = reader.address("address")) {
      reader.rename("VIP " + address->text());
      parse.config.vips.push_back({*address});
      parse.places.vips.push_back(reader.place("address"));
    }
    reader.finish();
  }
}

void parse_services(TableReader& root, Parse& parse) {
  for (const auto* table : root.tables("service", "write [[service]]"))
    parse_service(*table, parse);
}

}  // namespace holdfast::config

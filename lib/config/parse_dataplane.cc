// SPDX-License-Identifier: Apache-2.0
// [site], [dataplane] and [control].
#include <fmt/format.h>

#include <limits>

#include "lib/config/sections.h"
#include "lib/config/values.h"
#include "lib/protocol/socket_path.h"

namespace holdfast::config {
namespace {

const toml::table kNothing{};

/// The section's table; an empty one when it is absent, so that its required keys are reported.
const toml::table& section(TableReader& root, std::string_view key) {
  const auto* table = root.table(key);
  return table == nullptr ? kNothing : *table;
}

void parse_port_device(TableReader& reader, PortConfig& port, PortPlaces& places) {
  if (auto interface = reader.text("interface")) {
    if (!is_interface_name(*interface))
      reader.fault("interface", fmt::format("{} can not be a network interface: its name has 1 to "
                                            "15 bytes, no '/', ':' or space",
                                            in_quotes(*interface)));
    port.interface = *std::move(interface);
    places.interface = reader.place("interface");
  }
  if (auto vdev = reader.text("vdev")) {
    if (!vdev->starts_with("net_"))
      reader.fault("vdev", fmt::format("{} is not a DPDK network device: a vdev starts with the "
                                       "name of its driver, such as \"net_pcap0,...\"",
                                       in_quotes(*vdev)));
    port.vdev = *std::move(vdev);
    places.vdev = reader.place("vdev");
  }
  if (auto pci = reader.text("pci")) {
    if (!is_pci_address(*pci))
      reader.fault(
          "pci", fmt::format("{} is not a PCI address such as \"0000:03:00.1\"", in_quotes(*pci)));
    port.pci = *std::move(pci);
    places.pci = reader.place("pci");
  }
  const int devices = reader.has("interface") + reader.has("vdev") + reader.has("pci");
  if (devices != 1)
    reader.fault({}, fmt::format("{} needs exactly one of \"interface\", \"vdev\" and \"pci\"; it "
                                 "has {}",
                                 reader.what(), devices == 0 ? "none" : "more"));
}

void parse_port(const toml::table& table, Parse& parse) {
  TableReader reader{table, "a port of [dataplane]", parse.faults};
  PortConfig port;
  PortPlaces places;
  places.name = reader.own_name("port", port.name);
  parse_port_device(reader, port, places);
  if (const auto queues = reader.integer("queues", 1, 1024))
    port.queues = static_cast<std::uint16_t>(*queues);
  else
    places.queues_faulty = reader.has("queues");
  places.queues = reader.has("queues") ? reader.place("queues") : reader.place();
  reader.finish();
  parse.config.dataplane.ports.push_back(std::move(port));
  parse.places.ports.push_back(places);
}

/// Empty: it can be where the outer sources of tunnels come from.
std::string why_no_spread(const Prefix& prefix) {
  const bool v4 = prefix.address.is_v4();
  const unsigned least = v4 ? 8 : 32;
  const unsigned most = v4 ? 31 : 127;
  if (prefix.length < least || prefix.length > most)
    return fmt::format("a prefix for tunnel sources has a length of {} to {} in IPv{}", least, most,
                       v4 ? 4 : 6);
  // What no host can have is in blocks of at least that length.
  const auto why = why_not_unicast(prefix.address);
  return why.empty() ? why : fmt::format("it begins with {}", why);
}

void parse_ipip_spread(TableReader& reader, Parse& parse) {
  auto& dataplane = parse.config.dataplane;
  for (const auto& [text, place] : reader.texts("ipip_source_spread")) {
    const auto prefix = Prefix::parse(text);
    if (!prefix) {
      parse.faults.add(place, fmt::format("{} is not a prefix such as \"192.0.2.128/25\"; bits "
                                          "behind its length must be zero",
                                          in_quotes(text)));
      continue;
    }
    if (const auto why = why_no_spread(*prefix); !why.empty()) {
      parse.faults.add(place, fmt::format("{} can not be spread over: {}", in_quotes(text), why));
      continue;
    }
    const bool v4 = prefix->address.is_v4();
    auto& spread = v4 ? dataplane.ipip_spread_v4 : dataplane.ipip_spread_v6;
    if (spread) {
      parse.faults.add(place, fmt::format("\"ipip_source_spread\" has {} already; one prefix a "
                                          "family is possible",
                                          spread->text()));
      continue;
    }
    spread = prefix;
    (v4 ? parse.places.ipip_spread_v4 : parse.places.ipip_spread_v6) = place;
  }
}

}  // namespace

std::string Parse::resolve(const std::string& path) const {
  return path.starts_with('/') ? path : folder + path;
}

bool names_a_folder(std::string_view path) {
  const auto last = path.substr(path.rfind('/') + 1);  // all of it when there is no '/'
  return last.empty() || last == "." || last == "..";
}

void parse_site(TableReader& root, Parse& parse) {
  TableReader reader{section(root, "site"), "[site]", parse.faults};
  if (auto name = reader.name("name")) parse.config.site.name = *std::move(name);
  reader.finish();
}

void parse_dataplane(TableReader& root, Parse& parse) {
  TableReader reader{section(root, "dataplane"), "[dataplane]", parse.faults};
  auto& dataplane = parse.config.dataplane;

  reader.require("ports", "a list such as [{ name = \"uplink\", interface = \"eth1\" }]");
  const auto ports = reader.tables("ports", "ports = [{ name = \"...\", ... }]");
  // PortNumber has 8 bits, and one value means "none".
  if (ports.size() > index_of(kNoPort)) {
    reader.fault("ports", fmt::format("[dataplane] has {} ports; at most {} are possible",
                                      ports.size(), index_of(kNoPort)));
  } else {
    for (const auto* table : ports) parse_port(*table, parse);
  }
  if (reader.is_empty_list("ports")) reader.fault("ports", "[dataplane] needs at least one port");

  if (const auto workers = reader.integer("workers", 1, 128)) {
    dataplane.workers = static_cast<std::uint16_t>(*workers);
    parse.places.workers = reader.place("workers");
  }
  if (const auto capacity = reader.integer("flow_capacity", 1024, 1'000'000'000))
    dataplane.flow_capacity = static_cast<std::uint32_t>(*capacity);

  reader.require("hash_seed_file",
                 "a file with 16 hexadecimal digits, the same on every load balancer");
  if (const auto path = reader.text("hash_seed_file")) {
    if (names_a_folder(*path))
      reader.fault("hash_seed_file", fmt::format("\"hash_seed_file\" must name a file{}",
                                                 path->empty() ? "" : ", not a folder"));
    dataplane.hash_seed_file = parse.resolve(*path);
  }
  if (const auto busy_poll = reader.boolean("busy_poll")) dataplane.busy_poll = *busy_poll;
  if (const auto mtu = reader.integer("client_mtu", kMinClientMtu, kMaxClientMtu))
    dataplane.client_mtu = static_cast<std::uint16_t>(*mtu);
  dataplane.tunnel_source_v4 = reader.address("tunnel_source_v4", Family::ipv4);
  parse.places.tunnel_source_v4 = reader.place("tunnel_source_v4");
  dataplane.tunnel_source_v6 = reader.address("tunnel_source_v6", Family::ipv6);
  parse.places.tunnel_source_v6 = reader.place("tunnel_source_v6");
  parse_ipip_spread(reader, parse);
  constexpr std::int64_t kMaxRate = 1'000'000'000;
  if (const auto rate = reader.integer("icmp_relay_rate", 0, kMaxRate))
    dataplane.icmp_relay_rate = static_cast<std::uint32_t>(*rate);
  if (const auto rate = reader.integer("icmp_answer_rate", 0, kMaxRate))
    dataplane.icmp_answer_rate = static_cast<std::uint32_t>(*rate);
  if (const auto rate = reader.integer("sibling_lookup_rate", 0, kMaxRate))
    dataplane.sibling_lookup_rate = static_cast<std::uint32_t>(*rate);
  reader.finish();

  for (std::size_t i = 0; i < dataplane.ports.size(); ++i) {
    const auto& port = dataplane.ports[i];
    if (parse.places.ports[i].queues_faulty || port.queues >= dataplane.workers) continue;
    parse.faults.add(
        parse.places.ports[i].queues,
        fmt::format("port {} has fewer queues ({}) than there are workers ({}); each "
                    "worker needs its own: set queues = {}",
                    in_quotes(port.name), port.queues, dataplane.workers, dataplane.workers));
  }
}

void parse_control(TableReader& root, Parse& parse) {
  TableReader reader{section(root, "control"), "[control]", parse.faults};
  if (const auto path = reader.text("socket")) {
    auto& socket = parse.config.control.socket;
    socket = parse.resolve(*path);
    if (names_a_folder(*path))
      reader.fault("socket", fmt::format("\"socket\" must be the path of a socket{}",
                                         path->empty() ? "" : ", not of a folder"));
    else if (socket.size() > kMaxSocketPath)
      reader.fault("socket",
                   fmt::format("the socket's path {} has {} bytes; at most {} are possible",
                               in_quotes(socket), socket.size(), kMaxSocketPath));
  }
  const auto linger =
      reader.duration("linger", std::chrono::milliseconds{0}, std::chrono::minutes{10});
  if (linger) parse.config.control.linger = *linger;
  reader.finish();
}

}  // namespace holdfast::config

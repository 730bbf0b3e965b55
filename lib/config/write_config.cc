// SPDX-License-Identifier: Apache-2.0
#include "lib/config/write_config.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "lib/config/values.h"

namespace holdfast {
namespace {

using config::duration_text;

/// A basic string of TOML 1.0: quotes, backslashes and controls are escaped.
std::string quote(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      quoted += {'\\', c};
    else if (byte < 0x20 || byte == 0x7f)
      quoted += fmt::format("\\u{:04x}", byte);
    else
      quoted += c;
  }
  return quoted + '"';
}
std::string quote(const IpAddress& address) { return quote(address.text()); }

/// A float of TOML needs a point or an exponent.
std::string number(double value) {
  auto text = fmt::format("{}", value);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string list(const std::vector<std::string>& items) {
  return fmt::format("[{}]", fmt::join(items, ", "));
}

/// The keys of one table, as lines or between braces.
class Keys {
 public:
  /// `value` as TOML has it.
  void add(std::string_view key, std::string value) {
    pairs_.push_back(fmt::format("{} = {}", key, value));
  }
  void add_text(std::string_view key, std::string_view value) { add(key, quote(value)); }
  template <class Number>
  void add_number(std::string_view key, Number value) {
    add(key, fmt::format("{}", value));
  }
  void add_flag(std::string_view key, bool value) { add(key, value ? "true" : "false"); }
  void add_duration(std::string_view key, std::chrono::milliseconds value) {
    add_text(key, duration_text(value));
  }
  void add_address(std::string_view key, const std::optional<IpAddress>& value) {
    if (value) add(key, quote(*value));
  }

  [[nodiscard]] std::string lines() const { return fmt::format("{}\n", fmt::join(pairs_, "\n")); }
  [[nodiscard]] std::string braces() const {
    return fmt::format("{{ {} }}", fmt::join(pairs_, ", "));
  }

 private:
  std::vector<std::string> pairs_;
};

/// One table a line.
std::string table_list(const std::vector<std::string>& tables) {
  if (tables.empty()) return "[]";
  return fmt::format("[\n  {},\n]", fmt::join(tables, ",\n  "));
}

std::string port(const PortConfig& port) {
  Keys keys;
  keys.add_text("name", port.name);
  if (!port.interface.empty()) keys.add_text("interface", port.interface);
  if (!port.vdev.empty()) keys.add_text("vdev", port.vdev);
  if (!port.pci.empty()) keys.add_text("pci", port.pci);
  keys.add_number("queues", port.queues);
  return keys.braces();
}

std::string dataplane_section(const DataplaneConfig& dataplane) {
  std::vector<std::string> ports;
  for (const auto& one : dataplane.ports) ports.push_back(port(one));
  Keys keys;
  keys.add("ports", table_list(ports));
  keys.add_number("workers", dataplane.workers);
  keys.add_number("flow_capacity", dataplane.flow_capacity);
  keys.add_text("hash_seed_file", dataplane.hash_seed_file);
  keys.add_flag("busy_poll", dataplane.busy_poll);
  keys.add_number("client_mtu", dataplane.client_mtu);
  keys.add_address("tunnel_source_v4", dataplane.tunnel_source_v4);
  keys.add_address("tunnel_source_v6", dataplane.tunnel_source_v6);
  std::vector<std::string> spread;
  for (const auto& prefix : {dataplane.ipip_spread_v4, dataplane.ipip_spread_v6})
    if (prefix) spread.push_back(quote(prefix->text()));
  keys.add("ipip_source_spread", list(spread));
  keys.add_number("icmp_relay_rate", dataplane.icmp_relay_rate);
  keys.add_number("icmp_answer_rate", dataplane.icmp_answer_rate);
  keys.add_number("sibling_lookup_rate", dataplane.sibling_lookup_rate);
  return "\n[dataplane]\n" + keys.lines();
}

std::string control_section(const ControlConfig& control) {
  Keys keys;
  keys.add_text("socket", control.socket);
  keys.add_duration("linger", control.linger);
  return "\n[control]\n" + keys.lines();
}

std::string_view word_of(BgpMode mode) {
  switch (mode) {
    case BgpMode::external:
      return "external";
  }
  return "?";
}

std::string bgp_section(const BgpConfig& bgp) {
  Keys keys;
  keys.add_text("mode", word_of(bgp.mode));
  keys.add_text("gobgp", bgp.gobgp);
  keys.add_address("next_hop", bgp.next_hop);
  keys.add_address("next_hop_v6", bgp.next_hop_v6);
  return "\n[bgp]\n" + keys.lines();
}

/// Without [bgp] the keys of announcing would be faults.
std::string vip_section(const VipConfig& vip, bool has_bgp) {
  Keys keys;
  keys.add("address", quote(vip.address));
  if (has_bgp) {
    keys.add_flag("announce", vip.announce);
    std::vector<std::string> communities;
    for (const auto community : vip.communities)
      communities.push_back(fmt::format("\"{}:{}\"", community >> 16, community & 0xffff));
    keys.add("communities", list(communities));
    if (vip.med) keys.add_number("med", *vip.med);
    keys.add_number("prepend", unsigned{vip.prepend});
  }
  keys.add_flag("echo", vip.echo);
  keys.add_text("unknown_port", vip.reject_unknown_port ? "reject" : "drop");
  return "\n[[vip]]\n" + keys.lines();
}

std::string service_section(const ServiceConfig& service) {
  const bool udp = service.protocol == IpProtocol::udp;
  std::vector<std::string> vips;
  for (const auto& vip : service.vips) vips.push_back(quote(vip));
  Keys keys;
  keys.add_text("name", service.name);
  keys.add("vips", list(vips));
  keys.add_text("protocol", udp ? "udp" : "tcp");
  keys.add_text("ports", service.ports.text());
  keys.add_text("pool", service.pool);
  if (udp) keys.add_text("udp", service.stateless ? "stateless" : "flow");
  // For a stateless service the key would be a fault.
  if (udp && !service.stateless)
    keys.add_text("udp_on_drain", service.udp_repick_on_drain ? "repick" : "keep");
  if (service.mss_clamp) keys.add_number("mss_clamp", *service.mss_clamp);
  keys.add("max_share", number(service.max_share));
  keys.add("embryonic_share", number(service.embryonic_share));
  Keys timeouts;
  timeouts.add_duration("embryonic", service.timeouts.embryonic);
  timeouts.add_duration("established", service.timeouts.established);
  timeouts.add_duration("closing", service.timeouts.closing);
  timeouts.add_duration("udp", service.timeouts.udp);
  keys.add("timeouts", timeouts.braces());
  return "\n[[service]]\n" + keys.lines();
}

std::string backend(const BackendConfig& backend) {
  Keys keys;
  // The default name may be another backend's own: only as a default it is no fault.
  if (backend.name != backend.address.text()) keys.add_text("name", backend.name);
  keys.add("address", quote(backend.address));
  keys.add_number("weight", backend.weight);
  if (backend.next_hop) {
    Keys hop;
    hop.add_text("port", backend.next_hop->port);
    hop.add_text("mac", backend.next_hop->mac.text());
    hop.add_number("vlan", backend.next_hop->vlan);
    hop.add_number("mtu", backend.next_hop->mtu);
    keys.add("next_hop", hop.braces());
  }
  return keys.braces();
}

std::string pool_section(const PoolConfig& pool) {
  std::vector<std::string> backends;
  for (const auto& one : pool.backends) backends.push_back(backend(one));
  Keys keys;
  keys.add_text("name", pool.name);
  keys.add_number("table_size", pool.table_size);
  keys.add_text("encapsulation", name_of(pool.encapsulation));
  keys.add("dscp", pool.dscp ? fmt::format("{}", *pool.dscp) : quote("copy"));
  if (uses_udp(pool.encapsulation)) keys.add_flag("udp6_checksum", pool.udp6_checksum);
  if (!pool.check.empty()) keys.add_text("check", pool.check);
  keys.add_duration("down_grace", pool.down_grace);
  keys.add("backends", table_list(backends));
  return "\n[[pool]]\n" + keys.lines();
}

std::string_view word_of(CheckKind kind) {
  switch (kind) {
    case CheckKind::tcp:
      return "tcp";
  }
  return "?";
}

std::string check_section(const CheckConfig& check) {
  Keys keys;
  keys.add_text("name", check.name);
  keys.add_text("kind", word_of(check.kind));
  if (check.port) keys.add_number("port", *check.port);
  keys.add_duration("interval", check.interval);
  keys.add_duration("timeout", check.timeout);
  keys.add_number("rise", check.rise);
  keys.add_number("fall", check.fall);
  return "\n[[check]]\n" + keys.lines();
}

}  // namespace

std::string write_config(const Config& config) {
  std::string text = "[site]\n";
  // A name that is not there has no other form: "" is no name.
  if (!config.site.name.empty()) text += fmt::format("name = {}\n", quote(config.site.name));
  text += dataplane_section(config.dataplane) + control_section(config.control);
  if (config.bgp) text += bgp_section(*config.bgp);
  for (const auto& vip : config.vips) text += vip_section(vip, config.bgp.has_value());
  for (const auto& service : config.services) text += service_section(service);
  for (const auto& pool : config.pools) text += pool_section(pool);
  for (const auto& check : config.checks) text += check_section(check);
  return text;
}

}  // namespace holdfast

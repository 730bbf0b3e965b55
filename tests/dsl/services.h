// SPDX-License-Identifier: Apache-2.0
// Services and backends as a test writes them, and the snapshot that comes of them.
//
//   service("203.0.113.10", tcp(80)).to("192.0.2.21").to(backend("192.0.2.22").weighing(50))
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <vector>

#include "lib/model/snapshot.h"
#include "tests/dsl/layers.h"

namespace holdfast::dsl {

/// A port of a protocol, or several.
struct Ports {
  IpProtocol protocol;
  PortRange range;
};
[[nodiscard]] inline Ports tcp(std::uint16_t port) { return {IpProtocol::tcp, {port, port}}; }
[[nodiscard]] inline Ports udp(std::uint16_t port) { return {IpProtocol::udp, {port, port}}; }
[[nodiscard]] inline Ports tcp_any() { return {IpProtocol::tcp, {}}; }
[[nodiscard]] inline Ports udp_any() { return {IpProtocol::udp, {}}; }

/// By default back to the router, with room for a tunnelled packet of 1500 bytes.
struct Hop {
  std::uint8_t port = 0;
  std::uint16_t vlan = 0;
  std::uint16_t mtu = 1600;
  bool sums_udp = false;  // the port fills in UDP checksums
  Mac src = from_lb.src;
  Mac dst = from_lb.dst;
};

struct BackendSpec {
  Ip address;
  std::uint32_t weight = 100;
  BackendState state = BackendState::eligible;
  bool keeps_tcp = true;
  bool keeps_udp = true;
  bool awaits_check = true;  // while `state` is unchecked
  std::vector<Hop> hops{Hop{}};
  bool removed = false;  // gone from the config; its number stays a hole

  [[nodiscard]] BackendSpec weighing(std::uint32_t units) const {
    BackendSpec copy = *this;
    copy.weight = units;
    return copy;
  }
  [[nodiscard]] BackendSpec being(BackendState what) const {
    BackendSpec copy = *this;
    copy.state = what;
    return copy;
  }
  [[nodiscard]] BackendSpec over(std::vector<Hop> ways) const {
    BackendSpec copy = *this;
    copy.hops = std::move(ways);
    return copy;
  }
};
[[nodiscard]] inline BackendSpec backend(Ip address) { return {.address = address}; }

/// How packets travel, from these addresses.
struct TunnelSpec {
  Encapsulation encapsulation = Encapsulation::ipip;
  Ip source_v4 = "192.0.2.1";
  Ip source_v6 = "2001:db8:100::1";
  std::optional<std::uint8_t> dscp{};  // absent: copied
  bool udp6_checksum = true;
  std::uint32_t source_spread = 0;  // Backend::source_spread
};
[[nodiscard]] inline TunnelSpec ipip() { return {}; }
[[nodiscard]] inline TunnelSpec ipip(Ip source) {
  TunnelSpec spec;
  (source.is_v4() ? spec.source_v4 : spec.source_v6) = source;
  return spec;
}
[[nodiscard]] inline TunnelSpec gre() { return {.encapsulation = Encapsulation::gre}; }
[[nodiscard]] inline TunnelSpec gue() { return {.encapsulation = Encapsulation::gue}; }
[[nodiscard]] inline TunnelSpec gue0() { return {.encapsulation = Encapsulation::gue0}; }

struct ServiceSpec {
  std::vector<Ip> vips;
  Ports ports;
  TunnelSpec tunnel{};
  std::vector<BackendSpec> backends{};
  Service settings{};    // time-outs, shares, drain of UDP; the rest is filled in
  VipOptions manners{};  // of its VIPs, also in other services

  [[nodiscard]] ServiceSpec via(TunnelSpec spec) const {
    ServiceSpec copy = *this;
    copy.tunnel = spec;
    return copy;
  }
  [[nodiscard]] ServiceSpec rejecting() const {
    ServiceSpec copy = *this;
    copy.manners.reject_unknown_port = true;
    return copy;
  }
  [[nodiscard]] ServiceSpec without_echo() const {
    ServiceSpec copy = *this;
    copy.manners.echo = false;
    return copy;
  }
  [[nodiscard]] ServiceSpec to(BackendSpec spec) const {
    ServiceSpec copy = *this;
    copy.backends.push_back(std::move(spec));
    return copy;
  }
  [[nodiscard]] ServiceSpec to(Ip address) const { return to(backend(address)); }
  [[nodiscard]] ServiceSpec to(const char* address) const { return to(backend(address)); }
};
[[nodiscard]] inline ServiceSpec service(Ip vip, Ports ports) {
  return {.vips = {vip}, .ports = ports};
}
[[nodiscard]] inline ServiceSpec service(std::initializer_list<Ip> vips, Ports ports) {
  return {.vips = vips, .ports = ports};
}

/// A pool of its own for each service, numbers in the order of writing.
[[nodiscard]] std::unique_ptr<const Snapshot> build_snapshot(
    const std::vector<ServiceSpec>& services, HashSeed seed);

}  // namespace holdfast::dsl

// SPDX-License-Identifier: Apache-2.0
// A control plane without I/O for tests: configuration, state and time as values, and the snapshot
// and report that reconcile makes of them.
#pragma once

#include <stdexcept>

#include "ctrl/reconcile/reconcile.h"
#include "tests/catch.h"

namespace holdfast::plane {

using namespace std::chrono_literals;

inline IpAddress ip(std::string_view text) { return IpAddress::parse(text).value(); }

inline const IpAddress kA = ip("10.1.0.1");
inline const IpAddress kB = ip("10.1.0.2");
inline const IpAddress kC = ip("10.1.0.3");
inline const IpAddress kSource = ip("10.1.0.254");

inline ResolvedRoute by_eth0(std::uint8_t mac, std::uint16_t mtu = 1500) {
  return {.next_hops = {{.port = PortNumber{0},
                         .mtu = mtu,
                         .source = {{2, 0, 0, 0, 0, 254}},
                         .destination = {{2, 0, 0, 0, 0, mac}}}},
          .tunnel_source = kSource};
}

inline BackendConfig backend(std::string name, const IpAddress& address) {
  BackendConfig config;
  config.name = std::move(name);
  config.address = address;
  return config;
}

inline PoolConfig pool(std::string name, std::vector<BackendConfig> backends) {
  PoolConfig config;
  config.name = std::move(name);
  config.table_size = 251;
  config.check = "tcp";
  config.backends = std::move(backends);
  return config;
}

inline ServiceConfig service(std::string name, std::string pool_name,
                             std::string_view vip = "192.0.2.1", std::uint16_t port = 443) {
  ServiceConfig config;
  config.name = std::move(name);
  config.vips = {ip(vip)};
  config.ports = {port, port};
  config.pool = std::move(pool_name);
  return config;
}

/// Pool "web" with A, B and C behind 192.0.2.1:443, checked with rise 3 and fall 2.
inline Config web_config() {
  Config config;
  config.vips = {{ip("192.0.2.1")}};
  config.services = {service("https", "web")};
  config.pools = {pool("web", {backend("a", kA), backend("b", kB), backend("c", kC)})};
  config.checks.resize(1);
  config.checks[0].name = "tcp";
  config.checks[0].rise = 3;
  config.checks[0].fall = 2;
  return config;
}

inline PortDescription port(std::string name) {
  PortDescription description;
  description.name = std::move(name);
  description.mac = {{2, 0, 0, 0, 1, 1}};
  return description;
}

/// A control plane without I/O. All backends are resolved; none is checked yet.
struct Plane {
  Config config = web_config();
  RuntimeState state{.routes = {{kA, by_eth0(1)}, {kB, by_eth0(2)}, {kC, by_eth0(3)}},
                     .ports = {port("eth0")}};
  Instant now = 100s;
  Reconciled last{};

  Plane() { follow(); }

  void follow() { REQUIRE(follow_config(state, config, now)); }
  Plane& run() {
    last = reconcile(config, HashSeed{42}, state, last.memory, now);
    return *this;
  }
  Membership& member(const IpAddress& address, std::string pool_name = "web") {
    return state.memberships.at({std::move(pool_name), address});
  }
  void up(const IpAddress& address) {
    for (int i = 0; i < 3; ++i) member(address).health.on_success(now);
  }
  void down(const IpAddress& address) {
    for (int i = 0; i < 2; ++i) member(address).health.on_failure(now, "refused");
  }
  Plane& all_up() {
    for (const auto& [key, membership] : state.memberships) up(key.address);
    return run();
  }
  [[nodiscard]] const Backend& published(const IpAddress& address) const {
    return last.snapshot->backends[index_of(report(address).number)];
  }
  [[nodiscard]] const BackendReport& report(const IpAddress& address) const {
    for (const auto& candidate : last.pools[0].backends)
      if (candidate.address == address) return candidate;
    throw std::runtime_error("no such backend");
  }
  [[nodiscard]] const Pool& web() const { return last.snapshot->pools[0]; }
};

}  // namespace holdfast::plane

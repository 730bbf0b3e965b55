// SPDX-License-Identifier: Apache-2.0
// What a pool's tunnels are made of, from the file to the snapshot: how long the header is, DSCP,
// checksum, and the sources of IPIP.
#include "ctrl/reconcile/tunnel_source.h"
#include "lb/port/tunnel_room.h"
#include "tests/unit/config_text.h"
#include "tests/unit/plane.h"

using namespace holdfast;
using namespace holdfast::config_text;
using namespace holdfast::plane;

namespace {

/// The good configuration with these keys in [dataplane].
std::string with_dataplane(const std::string& keys) {
  return edited("workers = 1", "workers = 1\n" + keys);
}
std::string with_pool(const std::string& keys) {
  return edited("check = \"alive\"\n", "check = \"alive\"\n" + keys + '\n');
}

}  // namespace

TEST_CASE("each encapsulation's header has the length that the documentation says") {
  struct Row {
    Encapsulation encapsulation;
    unsigned over_ipv4;
    unsigned over_ipv6;
  };
  for (const Row& row : {Row{Encapsulation::ipip, 20, 40}, Row{Encapsulation::gre, 24, 44},
                         Row{Encapsulation::gue, 28, 48}, Row{Encapsulation::gue0, 32, 52}}) {
    CAPTURE(name_of(row.encapsulation));
    CHECK(tunnel_overhead(row.encapsulation, Family::ipv4) == row.over_ipv4);
    CHECK(tunnel_overhead(row.encapsulation, Family::ipv6) == row.over_ipv6);
  }
}

TEST_CASE("a pool says how packets travel, and by default it is IPIP with all of it copied") {
  const auto plain = good_config(kGood).pools[0];
  CHECK(plain.encapsulation == Encapsulation::ipip);
  CHECK_FALSE(plain.dscp);
  CHECK(plain.udp6_checksum);
  for (const auto encapsulation :
       {Encapsulation::ipip, Encapsulation::gre, Encapsulation::gue, Encapsulation::gue0}) {
    const auto text = "encapsulation = \"" + std::string(name_of(encapsulation)) + '"';
    CHECK(good_config(with_pool(text)).pools[0].encapsulation == encapsulation);
  }
  const auto pool =
      good_config(with_pool("encapsulation = \"gue\"\ndscp = 0\nudp6_checksum = false")).pools[0];
  CHECK(pool.dscp == 0);
  CHECK_FALSE(pool.udp6_checksum);
  CHECK_FALSE(good_config(with_pool("dscp = \"copy\"")).pools[0].dscp);
}

TEST_CASE("IPIP's sources are spread over one prefix a family") {
  const auto both = with_dataplane("ipip_source_spread = [\"2001:db8:9::/64\", \"10.9.0.0/16\"]");
  const auto dataplane = good_config(both).dataplane;
  CHECK(dataplane.ipip_spread_v4 == Prefix::parse("10.9.0.0/16"));
  CHECK(dataplane.ipip_spread_v6 == Prefix::parse("2001:db8:9::/64"));
  CHECK_FALSE(good_config(with_dataplane("ipip_source_spread = []")).dataplane.ipip_spread_v4);
}

TEST_CASE("what can not be the sources of tunnels is refused") {
  const auto fault_of = [](const std::string& prefixes) {
    return faults_of(with_dataplane("ipip_source_spread = [" + prefixes + "]"));
  };
  using Faults = std::vector<std::string>;
  CHECK(fault_of("\"10.9.0.1/16\"") ==
        Faults{"h.toml:8:23: \"10.9.0.1/16\" is not a prefix such as \"192.0.2.128/25\"; bits "
               "behind its length must be zero"});
  CHECK(
      fault_of("\"10.9.0.1\"") ==
      Faults{"h.toml:8:23: \"10.9.0.1\" can not be spread over: a prefix for tunnel sources has a "
             "length of 8 to 31 in IPv4"});
  CHECK(
      fault_of("\"2000::/3\"") ==
      Faults{"h.toml:8:23: \"2000::/3\" can not be spread over: a prefix for tunnel sources has a "
             "length of 32 to 127 in IPv6"});
  CHECK(fault_of("\"224.0.0.0/8\"") ==
        Faults{"h.toml:8:23: \"224.0.0.0/8\" can not be spread over: it begins with a multicast "
               "address"});
  CHECK(
      fault_of("\"10.9.0.0/16\", \"10.8.0.0/16\"") ==
      Faults{"h.toml:8:38: \"ipip_source_spread\" has 10.9.0.0/16 already; one prefix a family is "
             "possible"});
  CHECK(fault_of("\"203.0.113.0/24\"") ==
        Faults{"h.toml:12:11: 203.0.113.10 can not be a VIP: the tunnels' sources are in "
               "203.0.113.0/24 (line 8)"});
  CHECK(fault_of("\"2001:db8:1::/64\"") ==
        Faults{"h.toml:35:25: 2001:db8:1::22 can not be a backend: the tunnels' sources are in "
               "2001:db8:1::/64 (line 8)"});
}

TEST_CASE("a backend gets its pool's traffic class and checksum") {
  Plane plane;
  plane.all_up();
  CHECK(plane.published(kA).outer_class == OuterClass{});
  CHECK(plane.published(kA).udp6_checksum);
  plane.config.pools[0].encapsulation = Encapsulation::gue;
  plane.config.pools[0].dscp = 46;
  plane.config.pools[0].udp6_checksum = false;
  plane.run();
  CHECK(plane.published(kA).encapsulation == Encapsulation::gue);
  CHECK(plane.published(kA).outer_class == OuterClass{.kept = 3, .set = 46 << 2});
  CHECK_FALSE(plane.published(kA).udp6_checksum);
}

TEST_CASE("sources are spread for IPIP alone, and only in the family of the prefix") {
  Plane plane;
  plane.all_up();
  CHECK(plane.published(kA).tunnel_source == kSource);
  CHECK(plane.published(kA).source_spread == 0);
  plane.config.dataplane.ipip_spread_v6 = Prefix::parse("2001:db8:9::/64");
  plane.run();
  CHECK(plane.published(kA).tunnel_source == kSource);
  plane.config.dataplane.ipip_spread_v4 = Prefix::parse("10.9.0.0/20");
  plane.run();
  CHECK(plane.published(kA).tunnel_source == ip("10.9.0.0"));
  CHECK(plane.published(kA).source_spread == 0xfff);
  plane.config.pools[0].encapsulation = Encapsulation::gre;
  plane.run();
  CHECK(plane.published(kA).tunnel_source == kSource);
  CHECK(plane.published(kA).source_spread == 0);
}

TEST_CASE("of a long IPv6 prefix all 32 bits of a flow's entropy are used") {
  const IpAddress six = ip("2001:db8::1");
  DataplaneConfig config;
  config.ipip_spread_v6 = Prefix::parse("2001:db8:9::/64");
  CHECK(tunnel_source(config, Encapsulation::ipip, six).spread == 0xffffffff);
  config.ipip_spread_v6 = Prefix::parse("2001:db8:9::/96");
  CHECK(tunnel_source(config, Encapsulation::ipip, six).spread == 0xffffffff);
  config.ipip_spread_v6 = Prefix::parse("2001:db8:9::/97");
  CHECK(tunnel_source(config, Encapsulation::ipip, six).spread == 0x7fffffff);
  // Without any source there is no way at all, and a prefix does not make one.
  CHECK(tunnel_source(config, Encapsulation::ipip, {}).address.is_unspecified());
}

TEST_CASE("the start needs room for the header that is in use") {
  Config config;
  config.dataplane.ports = {{.name = "up", .interface = "eth0", .vdev = {}, .pci = {}}};
  config.pools.resize(1);
  config.pools[0].backends.resize(1);
  for (const char* backend : {"192.0.2.21", "2001:db8::21"})
    for (const auto encapsulation :
         {Encapsulation::ipip, Encapsulation::gre, Encapsulation::gue, Encapsulation::gue0}) {
      config.pools[0].encapsulation = encapsulation;
      config.pools[0].backends[0].address = ip(backend);
      const unsigned needed =
          1500u + tunnel_overhead(encapsulation, config.pools[0].backends[0].address.family());
      CAPTURE(name_of(encapsulation), needed);
      std::vector<KernelInterface> interfaces{{.name = "eth0", .mtu = needed}};
      CHECK(check_tunnel_room(config, interfaces));
      interfaces[0].mtu = needed - 1;
      const auto refused = check_tunnel_room(config, interfaces);
      REQUIRE_FALSE(refused);
      CHECK(refused.error().text().find("ip link set eth0 mtu " + std::to_string(needed)) !=
            std::string::npos);
    }
}

TEST_CASE(
    "a way that is too narrow for the header is a warning, and for IPv6 the end of a backend") {
  Plane plane;
  plane.config.pools[0].encapsulation = Encapsulation::gue0;
  plane.state.routes[kA] = by_eth0(1, 1532);
  plane.state.routes[kB] = by_eth0(2, 1531);
  plane.all_up();
  CHECK(plane.report(kA).warning.empty());
  CHECK(plane.report(kB).warning.find("packets of clients above 1499 bytes") != std::string::npos);
  plane.config.vips.push_back({ip("2001:db8::10")});
  plane.config.services.push_back(service("six", "web", "2001:db8::10"));
  plane.state.routes[kA] = by_eth0(1, 1280 + 32);
  plane.state.routes[kB] = by_eth0(2, 1280 + 31);
  plane.follow();
  plane.all_up();
  CHECK(plane.report(kA).state == BackendState::eligible);
  CHECK(plane.report(kB).state == BackendState::path_too_small);
}

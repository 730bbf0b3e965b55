// SPDX-License-Identifier: Apache-2.0
#include "ctrl/netlink/resolve.h"

#include <linux/neighbour.h>
#include <linux/rtnetlink.h>

#include <cerrno>

#include "tests/catch.h"

namespace holdfast::netlink {
namespace {

IpAddress address(std::string_view text) { return *IpAddress::parse(text); }
MacAddress mac(std::uint8_t last) { return {{2, 0, 0, 0, 0, last}}; }

/// Two ports on eth0 (2) and eth1 (3), a VLAN 5 on eth0 (9), and eth9 (8) that is no port.
struct World {
  std::vector<PortDescription> ports{
      {.name = "p0", .interface = "eth0", .interface_index = 2, .mac = mac(2), .mtu = 1600},
      {.name = "p1", .interface = "eth1", .interface_index = 3, .mac = mac(3), .mtu = 1600},
      {.name = "pcap", .interface = {}}};
  KernelView view;
  RouteAnswer answer{.route = {.type = RTN_UNICAST}};

  World() {
    link({.index = 2, .name = "eth0", .mac = mac(2), .mtu = 1600, .up = true});
    link({.index = 3, .name = "eth1", .mac = mac(3), .mtu = 1600, .up = true});
    link({.index = 8, .name = "eth9", .mac = mac(8), .mtu = 1500, .up = true});
    link({.index = 9,
          .name = "eth0.5",
          .mac = mac(9),
          .mtu = 1500,
          .up = true,
          .kind = "vlan",
          .parent = 2,
          .vlan = 5});
  }
  void link(const Link& link) { view.take(link); }
  void neighbour(std::uint32_t link, std::string_view text, std::uint16_t state,
                 std::uint8_t last) {
    view.take(Neighbour{.link = link, .address = address(text), .state = state, .mac = mac(last)});
  }
  void hop(std::uint32_t link, std::string_view gateway) {
    answer.route.hops.push_back({.link = link, .gateway = address(gateway)});
  }
  [[nodiscard]] Resolution run(std::string_view backend = "192.0.2.21") const {
    return resolve(address(backend), answer, view, ports);
  }
};

TEST_CASE("a gateway with a known MAC is a next hop of its port") {
  World world;
  world.hop(3, "10.0.1.1");
  world.neighbour(3, "10.0.1.1", NUD_STALE, 0x11);
  world.answer.source = address("10.0.1.9");
  const auto result = world.run();
  REQUIRE(result.route.next_hops.size() == 1);
  CHECK(result.route.next_hops[0] == NextHop{.port = PortNumber{1},
                                             .vlan = 0,
                                             .mtu = 1600,
                                             .source = mac(3),
                                             .destination = mac(0x11)});
  CHECK(result.route.tunnel_source == address("10.0.1.9"));
  CHECK(result.route.problem.empty());
  CHECK(result.neighbours == std::vector<NeighbourKey>{{3, address("10.0.1.1")}});
}

TEST_CASE("without a gateway the backend itself is the neighbour") {
  World world;
  world.answer.route.hops.push_back({.link = 2});
  world.neighbour(2, "192.0.2.21", NUD_REACHABLE, 0x21);
  REQUIRE(world.run().route.next_hops.size() == 1);
  CHECK(world.run().route.next_hops[0].destination == mac(0x21));
  CHECK(world.run("192.0.2.22").route.problem ==
        "192.0.2.22 has not answered yet on eth0: check that it is up and on that link");
}

TEST_CASE("a route's MTU and its own source go before the link's and the kernel's choice") {
  World world;
  world.hop(2, "10.0.0.1");
  world.neighbour(2, "10.0.0.1", NUD_REACHABLE, 0x11);
  world.answer.route.mtu = 1480;
  world.answer.route.source = address("10.0.0.5");
  world.answer.source = address("10.0.0.9");
  CHECK(world.run().route.next_hops.at(0).mtu == 1480);
  CHECK(world.run().route.tunnel_source == address("10.0.0.5"));
}

TEST_CASE("a source of the other family is none") {
  World world;
  world.hop(2, "2001:db8::1");
  world.neighbour(2, "2001:db8::1", NUD_REACHABLE, 0x11);
  world.answer.source = address("2001:db8::9");
  CHECK(world.run().route.next_hops.size() == 1);  // RFC 8950: an IPv6 neighbour is as good
  CHECK(world.run().route.tunnel_source.is_unspecified());
}

TEST_CASE("of a multipath route all next hops that answer are used, and all are asked") {
  World world;
  world.hop(2, "10.0.0.1");
  world.hop(3, "10.0.1.1");
  world.neighbour(2, "10.0.0.1", NUD_FAILED, 0);
  world.neighbour(3, "10.0.1.1", NUD_REACHABLE, 0x11);
  const auto one = world.run();
  REQUIRE(one.route.next_hops.size() == 1);
  CHECK(one.route.next_hops[0].port == PortNumber{1});
  CHECK(one.route.problem.empty());
  CHECK(one.neighbours.size() == 2);

  world.neighbour(2, "10.0.0.1", NUD_REACHABLE, 0x10);
  CHECK(world.run().route.next_hops.size() == 2);

  world.neighbour(2, "10.0.0.1", NUD_FAILED, 0);
  world.neighbour(3, "10.0.1.1", NUD_FAILED, 0);
  CHECK(world.run().route.next_hops.empty());
  CHECK(world.run().route.problem ==
        "10.0.0.1 does not answer on eth0: check that it is up and on that link");
}

TEST_CASE("a VLAN sub-interface of a port is that port with a tag") {
  World world;
  world.hop(9, "10.5.0.1");
  world.neighbour(9, "10.5.0.1", NUD_REACHABLE, 0x51);
  REQUIRE(world.run().route.next_hops.size() == 1);
  CHECK(world.run().route.next_hops[0] == NextHop{.port = PortNumber{0},
                                                  .vlan = 5,
                                                  .mtu = 1500,
                                                  .source = mac(9),
                                                  .destination = mac(0x51)});
}

TEST_CASE("a tag that a next hop can not carry is no port") {
  World world;
  auto service = *world.view.link(9);
  service.service_tag = true;
  world.link(service);
  world.hop(9, "10.5.0.1");
  CHECK(world.run().route.problem == "its route leaves by eth0.5, which is no port of [dataplane]");

  service.service_tag = false;
  service.parent = 8;
  world.link(service);
  CHECK(world.run().route.next_hops.empty());
}

TEST_CASE("what can not be a next hop is told") {
  World world;
  SECTION("no route") {
    world.answer.error = ENETUNREACH;
    CHECK(world.run().route.problem == "no route: add one that leaves by a port (`ip route add`)");
  }
  SECTION("a blackhole, as the kernel answers for it") {
    world.answer.error = EINVAL;
    CHECK(world.run().route.problem == "its route says that it can not be reached");
  }
  SECTION("an unreachable route") {
    world.answer.route.type = RTN_UNREACHABLE;
    CHECK(world.run().route.problem == "its route says that it can not be reached");
  }
  SECTION("our own address") {
    world.answer.route.type = RTN_LOCAL;
    CHECK(world.run().route.problem == "its address is one of this host's own");
  }
  SECTION("an interface that is no port") {
    world.hop(8, "10.9.0.1");
    CHECK(world.run().route.problem == "its route leaves by eth9, which is no port of [dataplane]");
  }
  SECTION("an interface that is gone") {
    world.hop(77, "10.9.0.1");
    CHECK(world.run().route.problem == "its route leaves by an interface that is gone");
  }
  SECTION("a link that is down") {
    world.hop(2, "10.0.0.1");
    world.neighbour(2, "10.0.0.1", NUD_REACHABLE, 0x11);
    auto link = *world.view.link(2);
    link.up = false;
    world.link(link);
    CHECK(world.run().route.problem == "eth0 is down");
  }
  SECTION("a next hop that the kernel calls dead") {
    world.hop(2, "10.0.0.1");
    world.answer.route.hops[0].dead = true;
    CHECK(world.run().route.problem == "eth0 is down");
  }
  CHECK(world.run().route.next_hops.empty());
}

TEST_CASE("a deleted link or neighbour is forgotten") {
  World world;
  world.hop(2, "10.0.0.1");
  world.neighbour(2, "10.0.0.1", NUD_REACHABLE, 0x11);
  CHECK(world.run().route.next_hops.size() == 1);
  world.view.take(Neighbour{.deleted = true, .link = 2, .address = address("10.0.0.1")});
  CHECK(world.run().route.problem ==
        "10.0.0.1 has not answered yet on eth0: check that it is up and on that link");
  world.view.take(Link{.deleted = true, .index = 2});
  CHECK(world.run().route.problem == "its route leaves by an interface that is gone");
}

TEST_CASE("routes are looked up in the VRFs that the ports and their VLANs belong to") {
  World world;
  CHECK(routing_domains(world.view, world.ports) == std::vector<std::uint32_t>{0});
  world.link({.index = 70, .name = "vrf-blue", .up = true, .kind = "vrf"});
  auto vlan = *world.view.link(9);
  vlan.master = 70;
  world.link(vlan);
  CHECK(routing_domains(world.view, world.ports) == std::vector<std::uint32_t>{0, 70});
  for (const std::uint32_t index : {2U, 3U}) {
    auto link = *world.view.link(index);
    link.master = 70;
    world.link(link);
  }
  CHECK(routing_domains(world.view, world.ports) == std::vector<std::uint32_t>{70});
  // A bridge is a master too, but no domain of its own.
  world.link({.index = 71, .name = "br0", .up = true, .kind = "bridge"});
  auto bridged = *world.view.link(2);
  bridged.master = 71;
  world.link(bridged);
  CHECK(routing_domains(world.view, world.ports) == std::vector<std::uint32_t>{0, 70});
  CHECK(routing_domains({}, world.ports).empty());
}

}  // namespace
}  // namespace holdfast::netlink

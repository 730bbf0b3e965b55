// SPDX-License-Identifier: Apache-2.0
// How backends are reached: next hops, tunnel sources, MTUs.
#include <algorithm>

#include "ctrl/reconcile/reconcile.h"
#include "tests/catch.h"
#include "tests/unit/plane.h"

using namespace holdfast;
using namespace holdfast::plane;

namespace {

const IpAddress kRouter = ip("198.51.100.1");

}  // namespace

TEST_CASE("a next hop that is lost keeps the last known one, and takes no new flows") {
  Plane plane;
  plane.all_up();
  plane.state.routes[kA] = {.problem = "10.1.0.1 does not answer on eth0"};
  for (int i = 0; i < 3; ++i) {
    plane.run();
    const auto& sent = plane.published(kA);
    CHECK(sent.state == BackendState::next_hop_lost);
    CHECK(sent.tunnel_source == kSource);
    REQUIRE(sent.next_hop_count == 1);
    CHECK(plane.last.snapshot->next_hops[sent.first_next_hop].destination.bytes[5] == 1);
    CHECK(plane.report(kA).reason == "next hop lost: 10.1.0.1 does not answer on eth0");
    CHECK(plane.report(kA).slots == 0);
  }
  plane.state.routes[kA] = by_eth0(9);
  plane.run();
  CHECK(plane.published(kA).state == BackendState::eligible);
  CHECK(plane.last.snapshot->next_hops[plane.published(kA).first_next_hop].destination.bytes[5] ==
        9);
}

TEST_CASE("a next hop that was never resolved: not eligible, nothing to send by") {
  Plane plane;
  plane.state.routes[kA] = {.problem = "no route"};
  plane.state.routes.erase(kB);
  plane.all_up();
  CHECK(plane.published(kA).state == BackendState::unchecked);  // still being resolved
  CHECK(plane.last.next_deadline == plane.now + 3s);
  plane.now += 3s;
  plane.run();
  CHECK(plane.published(kA).state == BackendState::neigh_unresolved);
  CHECK(plane.published(kA).next_hop_count == 0);
  CHECK(plane.report(kA).reason == "next hop never resolved: no route");
  CHECK(plane.report(kB).state == BackendState::neigh_unresolved);
  CHECK(plane.report(kC).slots == 251);
}

TEST_CASE("each backend's next hops lie together") {
  Plane plane;
  auto two = by_eth0(11);
  two.next_hops.push_back(by_eth0(12).next_hops[0]);
  plane.state.routes[kB] = two;
  plane.all_up();
  const auto& hops = plane.last.snapshot->next_hops;
  REQUIRE(hops.size() == 4);
  const auto& sent = plane.published(kB);
  REQUIRE(sent.next_hop_count == 2);
  CHECK(hops[sent.first_next_hop].destination.bytes[5] == 11);
  CHECK(hops[sent.first_next_hop + 1].destination.bytes[5] == 12);
  CHECK(hops[plane.published(kC).first_next_hop].destination.bytes[5] == 3);
}

TEST_CASE("the tunnel source is the configured one of the backend's family, else the interface's") {
  Plane plane;
  plane.config.dataplane.tunnel_source_v6 = ip("2001:db8::f");
  plane.all_up();
  CHECK(plane.published(kA).tunnel_source == kSource);
  plane.config.dataplane.tunnel_source_v4 = ip("10.9.9.9");
  plane.run();
  CHECK(plane.published(kA).tunnel_source == ip("10.9.9.9"));
}

TEST_CASE("without any tunnel source a backend is not eligible, and the reason says what to do") {
  Plane plane;
  plane.state.ports[0].interface = "eth0";
  plane.state.routes[kA].tunnel_source = {};
  plane.now += 1min;
  plane.all_up();
  CHECK(plane.published(kA).state == BackendState::neigh_unresolved);
  CHECK(plane.published(kA).next_hop_count == 0);
  CHECK(plane.report(kA).reason ==
        "next hop never resolved: no IPv4 source for the tunnel: set tunnel_source_v4, or give "
        "eth0 an IPv4 address");
  plane.state.ports[0].interface.clear();  // a virtual device can not have one
  plane.run();
  CHECK(plane.report(kA).reason ==
        "next hop never resolved: no IPv4 source for the tunnel: set tunnel_source_v4");
}

TEST_CASE("a fixed next hop of the configuration needs no kernel route") {
  Plane plane;
  plane.state.ports = {port("eth0"), port("pcap1")};
  plane.config.dataplane.tunnel_source_v4 = kSource;
  auto& fixed = plane.config.pools[0].backends[0];
  fixed.next_hop =
      StaticNextHop{.port = "pcap1", .mac = {{2, 0, 0, 0, 9, 9}}, .vlan = 7, .mtu = 1400};
  plane.state.routes.erase(kA);
  plane.all_up();
  CHECK(plane.published(kA).state == BackendState::eligible);
  const auto& hop = plane.last.snapshot->next_hops[plane.published(kA).first_next_hop];
  CHECK(hop.port == PortNumber{1});
  CHECK(hop.vlan == 7);
  CHECK(hop.mtu == 1400);
  CHECK(hop.source == plane.state.ports[1].mac);
  CHECK(hop.destination == fixed.next_hop->mac);
}

TEST_CASE("a way that can not carry 1280 bytes of IPv6 is not for pools of IPv6 services") {
  Plane plane;
  plane.config.vips.push_back({ip("2001:db8::1")});
  plane.config.services.push_back(service("https6", "web", "2001:db8::1"));
  plane.config.pools.push_back(pool("old", {backend("a", kA)}));
  plane.config.services.push_back(service("http", "old", "192.0.2.1", 80));
  SECTION("an IPv4 tunnel adds 20 bytes") {
    plane.state.routes[kA] = by_eth0(1, 1299);
    plane.state.routes[kB] = by_eth0(2, 1300);
  }
  SECTION("the smallest of several next hops decides") {
    plane.state.routes[kA].next_hops.push_back(by_eth0(4, 1299).next_hops[0]);
  }
  plane.follow();
  plane.up(kA);
  plane.member(kA, "old").health.on_success(plane.now);
  plane.up(kB);
  plane.run();
  CHECK(plane.report(kA).state == BackendState::path_too_small);
  CHECK(plane.report(kA).reason ==
        "path too small for IPv6: the MTU by eth0 is 1299, 1300 are needed");
  CHECK(plane.report(kA).slots == 0);
  CHECK(plane.published(kA).keeps_tcp);
  CHECK(plane.report(kB).state == BackendState::eligible);
  CHECK(plane.last.pools[1].backends[0].state == BackendState::eligible);  // IPv4 only
}

TEST_CASE("a way that is too narrow for the longest packets of clients is used, with a warning") {
  Plane plane;
  plane.config.dataplane.client_mtu = 1500;
  plane.state.routes[kA] = by_eth0(1, 1519);
  plane.state.routes[kB] = by_eth0(2, 1520);
  plane.all_up();
  CHECK(plane.report(kA).state == BackendState::eligible);
  CHECK(plane.report(kA).slots > 0);
  CHECK(plane.report(kA).warning ==
        "the MTU by eth0 is 1519, so packets of clients above 1499 bytes are answered with Packet "
        "Too Big, or fragmented: raise it to 1520 on links and routes, or lower client_mtu (1500) "
        "if that is meant");
  CHECK(plane.report(kB).warning.empty());

  plane.state.routes[kA] = {.problem = "no route"};  // what it could not carry is no news then
  plane.run();
  CHECK(plane.report(kA).state == BackendState::next_hop_lost);
  CHECK_FALSE(plane.report(kA).warning.empty());

  plane.state.routes[kA] = by_eth0(1, 1519);
  plane.config.dataplane.client_mtu = 1499;
  plane.run();
  CHECK(plane.report(kA).warning.empty());
}

TEST_CASE("an IPv6 tunnel adds 40 bytes") {
  Plane plane;
  const IpAddress six = ip("2001:db8:1::1");
  plane.config.services[0].vips.push_back(ip("2001:db8::1"));
  plane.config.pools[0].backends = {backend("six", six)};
  plane.state.routes[six] = by_eth0(6, 1319);
  plane.state.routes[six].tunnel_source = ip("2001:db8:1::f");
  plane.follow();
  plane.all_up();
  CHECK(plane.report(six).state == BackendState::path_too_small);
  plane.state.routes[six].next_hops[0].mtu = 1320;
  plane.run();
  CHECK(plane.report(six).state == BackendState::eligible);
}

TEST_CASE(
    "what a router said lowers the MTU of all ways to its backend, for as long as it counts") {
  Plane plane;
  plane.config.dataplane.client_mtu = 1300;
  plane.state.routes[kA].next_hops.push_back(by_eth0(4, 1350).next_hops[0]);
  static_cast<void>(plane.state.path_mtus.learn({"web", kA}, 1400, kRouter, plane.now));
  plane.all_up();
  const auto mtu_of = [&](const IpAddress& backend, std::uint32_t way) {
    return plane.last.snapshot->next_hops[plane.published(backend).first_next_hop + way].mtu;
  };
  CHECK(mtu_of(kA, 0) == 1400);
  CHECK(mtu_of(kA, 1) == 1350);  // never raised
  CHECK(mtu_of(kB, 0) == 1500);
  CHECK(plane.report(kA).path_mtu == PathMtu{1400, kRouter});
  CHECK_FALSE(plane.report(kB).path_mtu);
  CHECK(plane.report(kA).state == BackendState::eligible);
  CHECK(plane.last.next_deadline == plane.now + 10min);

  plane.now += 10min;
  plane.run();
  CHECK(mtu_of(kA, 0) == 1500);
  CHECK_FALSE(plane.report(kA).path_mtu);
}

TEST_CASE("what a router said of a lost way counts for the last known one") {
  Plane plane;
  plane.all_up();
  plane.state.routes[kA] = {.problem = "no route"};
  static_cast<void>(plane.state.path_mtus.learn({"web", kA}, 1400, kRouter, plane.now));
  plane.run();
  CHECK(plane.last.snapshot->next_hops[plane.published(kA).first_next_hop].mtu == 1400);
  plane.state.routes[kA] = by_eth0(1);
  plane.now += 10min;
  plane.run();
  CHECK(plane.last.snapshot->next_hops[plane.published(kA).first_next_hop].mtu == 1500);
}

TEST_CASE("what is no less than the next hop's MTU makes no difference and is not reported") {
  Plane plane;
  static_cast<void>(plane.state.path_mtus.learn({"web", kA}, 1500, kRouter, plane.now));
  plane.all_up();
  CHECK_FALSE(plane.report(kA).path_mtu);
  CHECK(plane.last.snapshot->next_hops[plane.published(kA).first_next_hop].mtu == 1500);
}

TEST_CASE("a path MTU is of one pool's way, and the report says how much the pool needs") {
  Plane plane;
  plane.config.vips.push_back({ip("2001:db8::1")});
  plane.config.services.push_back(service("https6", "web", "2001:db8::1"));
  plane.config.pools.push_back(pool("old", {backend("a", kA)}));
  plane.config.services.push_back(service("http", "old", "192.0.2.1", 80));
  static_cast<void>(plane.state.path_mtus.learn({"old", kA}, 1299, kRouter, plane.now));
  plane.follow();
  plane.all_up();
  const auto& web = plane.last.pools[0].backends[0];
  const auto& old = plane.last.pools[1].backends[0];
  const auto mtu_of = [&](const BackendReport& report) {
    const auto& sent = plane.last.snapshot->backends[index_of(report.number)];
    return plane.last.snapshot->next_hops[sent.first_next_hop].mtu;
  };
  CHECK(web.minimum_mtu == 1300);
  CHECK(mtu_of(web) == 1500);
  CHECK_FALSE(web.path_mtu);
  CHECK(old.minimum_mtu == 0);
  CHECK(mtu_of(old) == 1299);
  CHECK(old.path_mtu == PathMtu{1299, kRouter});
  CHECK(old.tunnel_source == kSource);
}

TEST_CASE("a path MTU that is too narrow for the longest packets of clients is a warning") {
  Plane plane;
  plane.config.dataplane.client_mtu = 1500;
  plane.state.routes[kA] = by_eth0(1, 1600);
  static_cast<void>(plane.state.path_mtus.learn({"web", kA}, 1400, kRouter, plane.now));
  plane.all_up();
  CHECK(plane.report(kA).warning.find("router 198.51.100.1 says that the path MTU is 1400, so "
                                      "packets of clients above 1380 bytes ") == 0);
  CHECK(plane.report(kA).state == BackendState::eligible);
}

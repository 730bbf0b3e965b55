// SPDX-License-Identifier: Apache-2.0
#include "ctrl/reconcile.h"

#include <algorithm>
#include <functional>

#include "tests/catch.h"

using namespace holdfast;
using namespace std::chrono_literals;

namespace {

IpAddress ip(std::string_view text) { return IpAddress::parse(text).value(); }

const IpAddress kA = ip("10.1.0.1");
const IpAddress kB = ip("10.1.0.2");
const IpAddress kC = ip("10.1.0.3");
const IpAddress kSource = ip("10.1.0.254");

ResolvedRoute by_eth0(std::uint8_t mac, std::uint16_t mtu = 1500) {
  return {.next_hops = {{.port = PortNumber{0},
                         .mtu = mtu,
                         .source = {{2, 0, 0, 0, 0, 254}},
                         .destination = {{2, 0, 0, 0, 0, mac}}}},
          .tunnel_source = kSource};
}

BackendConfig backend(std::string name, const IpAddress& address) {
  BackendConfig config;
  config.name = std::move(name);
  config.address = address;
  return config;
}

PoolConfig pool(std::string name, std::vector<BackendConfig> backends) {
  PoolConfig config;
  config.name = std::move(name);
  config.table_size = 251;
  config.check = "tcp";
  config.backends = std::move(backends);
  return config;
}

ServiceConfig service(std::string name, std::string pool_name, std::string_view vip = "192.0.2.1",
                      std::uint16_t port = 443) {
  ServiceConfig config;
  config.name = std::move(name);
  config.vips = {ip(vip)};
  config.ports = {port, port};
  config.pool = std::move(pool_name);
  return config;
}

/// Pool "web" with A, B and C behind 192.0.2.1:443, checked with rise 3 and fall 2.
Config web_config() {
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

PortDescription port(std::string name) {
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

}  // namespace

TEST_CASE("with all backends up the effective table is the base itself") {
  Plane plane;
  plane.all_up();
  CHECK(plane.last.snapshot->generation == 1);
  CHECK(plane.web().present);
  CHECK(plane.web().base->size() == 251);
  CHECK(plane.web().effective == plane.web().base);
  CHECK(plane.last.pools[0].placement == PoolPlacement::eligible);
  CHECK(plane.last.pools[0].base_digest == plane.last.pools[0].effective_digest);
  std::uint32_t slots = 0;
  for (const auto& backend : plane.last.pools[0].backends) {
    CHECK(backend.state == BackendState::eligible);
    CHECK((backend.slots == 83 || backend.slots == 84));
    slots += backend.slots;
  }
  CHECK(slots == 251);
}

TEST_CASE("after a start nobody is checked: the base stands, new flows have no backend yet") {
  Plane plane;
  plane.run();
  CHECK(plane.web().base->size() == 251);
  CHECK(plane.web().effective->empty());
  CHECK(plane.last.pools[0].placement == PoolPlacement::none);
  CHECK(plane.published(kA).state == BackendState::unchecked);
  CHECK(plane.published(kA).keeps_tcp);
  CHECK(plane.published(kA).next_hop_count == 1);
}

TEST_CASE("a pool without a check is up at once") {
  Plane plane;
  plane.config.pools.push_back(pool("plain", {backend("a", kA)}));
  plane.config.pools.back().check.clear();
  plane.follow();
  plane.run();
  CHECK(plane.last.pools[1].backends[0].state == BackendState::eligible);
}

TEST_CASE("a backend that goes down loses its slots; the others keep theirs") {
  Plane plane;
  plane.all_up();
  const auto base = plane.web().base;
  plane.down(kB);
  plane.run();
  CHECK(plane.web().base == base);
  CHECK(plane.report(kB).state == BackendState::down);
  CHECK(plane.report(kB).slots == 0);
  CHECK(plane.report(kB).base_slots > 80);
  for (std::size_t slot = 0; slot < base->size(); ++slot)
    if ((*base)[slot] != plane.report(kB).number)
      REQUIRE((*plane.web().effective)[slot] == (*base)[slot]);
  CHECK(plane.last.pools[0].base_digest != plane.last.pools[0].effective_digest);

  plane.up(kB);
  plane.run();
  CHECK(plane.web().effective == base);
}

TEST_CASE("tables are shared with the snapshot before while nothing about the pool changed") {
  Plane plane;
  plane.all_up();
  plane.down(kB);
  plane.run();
  const auto base = plane.web().base;
  const auto effective = plane.web().effective;
  SECTION("time passes") { plane.now += 1h; }
  SECTION("another pool appears") {
    plane.config.pools.insert(plane.config.pools.begin(), pool("api", {backend("a", kA)}));
    plane.follow();
  }
  SECTION("the backends stand in another order in the file") {
    std::reverse(plane.config.pools[0].backends.begin(), plane.config.pools[0].backends.end());
    plane.follow();
  }
  SECTION("a next hop changes") { plane.state.routes[kC] = by_eth0(77); }
  plane.run();
  const auto& web = plane.last.pools[0].name == "web" ? plane.last.snapshot->pools[0]
                                                      : plane.last.snapshot->pools[1];
  CHECK(web.base == base);
  CHECK(web.effective == effective);
}

TEST_CASE("a new weight makes a new base; weight 0 takes a backend out of it") {
  Plane plane;
  plane.all_up();
  const auto base = plane.web().base;
  plane.config.pools[0].backends[1].weight = 50;
  plane.follow();
  plane.run();
  CHECK(plane.web().base != base);
  CHECK(plane.report(kB).slots == 50);

  plane.config.pools[0].backends[1].weight = 0;
  plane.follow();
  plane.run();
  CHECK(plane.report(kB).state == BackendState::weight_zero);
  CHECK(plane.report(kB).base_slots == 0);
  CHECK(plane.published(kB).present);
  CHECK(plane.published(kB).keeps_tcp);
}

TEST_CASE("all weights 0: both tables are empty, and that is no fault") {
  Plane plane;
  for (auto& backend : plane.config.pools[0].backends) backend.weight = 0;
  plane.follow();
  plane.all_up();
  CHECK(plane.web().base->empty());
  CHECK(plane.web().effective->empty());
  CHECK(plane.last.pools[0].placement == PoolPlacement::none);
}

TEST_CASE("a drained backend gets no new flows, and its deadline is when to look again") {
  Plane plane;
  plane.all_up();
  plane.member(kA).drain.start(plane.now, 60s);
  plane.run();
  CHECK(plane.report(kA).state == BackendState::draining);
  CHECK(plane.report(kA).drain_deadline == plane.now + 60s);
  CHECK(plane.report(kA).slots == 0);
  CHECK(plane.published(kA).keeps_tcp);
  CHECK(plane.last.next_deadline == plane.now + 60s);

  plane.now += 60s;
  plane.run();
  CHECK_FALSE(plane.published(kA).keeps_tcp);
  CHECK_FALSE(plane.last.next_deadline);

  plane.member(kA).drain.enable();
  plane.run();
  CHECK(plane.web().effective == plane.web().base);
}

TEST_CASE("when only draining backends are left, new flows go to them") {
  Plane plane;
  plane.all_up();
  plane.member(kA).drain.start(plane.now, std::nullopt);
  plane.member(kB).drain.start(plane.now, std::nullopt);
  plane.down(kC);
  plane.run();
  CHECK(plane.last.pools[0].placement == PoolPlacement::draining_only);
  CHECK(plane.report(kA).slots + plane.report(kB).slots == 251);
  CHECK(plane.report(kC).slots == 0);

  SECTION("not to one whose next hop is gone as well") {
    plane.state.routes[kA] = {.problem = "no route"};
    plane.run();
    CHECK(plane.report(kB).slots == 251);
  }
  SECTION("not to one of weight 0") {
    plane.config.pools[0].backends[0].weight = 0;
    plane.follow();
    plane.run();
    CHECK(plane.report(kB).slots == 251);
  }
  SECTION("an eligible one takes them back") {
    plane.up(kC);
    plane.run();
    CHECK(plane.last.pools[0].placement == PoolPlacement::eligible);
    CHECK(plane.report(kC).slots == 251);
  }
  SECTION("when they go down too, nobody is left") {
    plane.down(kA);
    plane.down(kB);
    plane.run();
    CHECK(plane.last.pools[0].placement == PoolPlacement::none);
    CHECK(plane.web().effective->empty());
  }
}

TEST_CASE("the grace of a backend that is down is a deadline too") {
  Plane plane;
  plane.all_up();
  plane.down(kA);
  plane.run();
  CHECK(plane.published(kA).keeps_tcp);
  CHECK_FALSE(plane.published(kA).keeps_udp);
  CHECK(plane.last.next_deadline == plane.now + 10s);
  plane.now += 10s;
  plane.run();
  CHECK_FALSE(plane.published(kA).keeps_tcp);
}

TEST_CASE("since is when the state began, through any number of reconciles") {
  Plane plane;
  plane.all_up();
  CHECK(plane.report(kA).since == 100s);
  plane.now += 5s;
  plane.down(kA);
  plane.run();
  CHECK(plane.report(kA).since == 105s);
  plane.now += 60s;
  plane.run();
  CHECK(plane.report(kA).since == 105s);
  CHECK(plane.report(kB).since == 100s);
}

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
  CHECK(plane.last.next_deadline == plane.now + 10s);
  plane.now += 10s;
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
  plane.state.routes[kA].tunnel_source = {};
  plane.now += 1min;
  plane.all_up();
  CHECK(plane.published(kA).state == BackendState::neigh_unresolved);
  CHECK(plane.published(kA).next_hop_count == 0);
  CHECK(plane.report(kA).reason ==
        "next hop never resolved: no IPv4 source for the tunnel: set tunnel_source_v4, or give "
        "eth0 an IPv4 address");
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

TEST_CASE("services get their numbers, pools and rules") {
  Plane plane;
  plane.config.vips.push_back({ip("192.0.2.99")});
  plane.config.pools.push_back(pool("dns", {backend("a", kA)}));
  auto dns = service("dns", "dns", "192.0.2.1", 53);
  dns.protocol = IpProtocol::udp;
  dns.udp_repick_on_drain = true;
  dns.max_share = 0.5;
  plane.config.services.insert(plane.config.services.begin(), dns);
  plane.follow();
  plane.all_up();
  const auto& snapshot = *plane.last.snapshot;
  const auto number = plane.state.service_numbers.find("dns").value();
  CHECK(index_of(number) == 1);  // "https" had its number before
  const auto* found = snapshot.service(number);
  REQUIRE(found != nullptr);
  CHECK(found->pool == PoolNumber{1});
  CHECK(found->protocol == IpProtocol::udp);
  CHECK(found->udp_repick_on_drain);
  CHECK(found->max_share == 0.5);
  const auto look = [&](std::string_view vip, IpProtocol protocol, std::uint16_t port) {
    return snapshot.service_table.lookup(ip(vip), protocol, Be16::from_host(port)).service;
  };
  CHECK(look("192.0.2.1", IpProtocol::udp, 53) == number);
  CHECK(look("192.0.2.1", IpProtocol::tcp, 443) == ServiceNumber{0});
  CHECK(look("192.0.2.1", IpProtocol::tcp, 80) == kNoService);
  CHECK(snapshot.service_table.is_vip(ip("192.0.2.99")));
  CHECK(plane.published(kA).pool == PoolNumber{0});
}

TEST_CASE("an apply keeps health, drain and number of what it does not concern") {
  Plane plane;
  plane.all_up();
  plane.member(kA).drain.start(plane.now, std::nullopt);
  plane.down(kB);
  plane.run();
  const auto before = plane.last.pools[0].backends;
  plane.now += 1s;
  plane.config.pools[0].backends.push_back(backend("d", ip("10.1.0.4")));
  std::reverse(plane.config.pools[0].backends.begin(), plane.config.pools[0].backends.end());
  plane.follow();
  plane.run();
  for (const auto& was : before) {
    CHECK(plane.report(was.address).state == was.state);
    CHECK(plane.report(was.address).number == was.number);
    CHECK(plane.report(was.address).since == was.since);
  }
  CHECK(plane.report(ip("10.1.0.4")).state == BackendState::unchecked);
}

TEST_CASE("a removed backend is absent from the snapshot, and its number is not reused at once") {
  Plane plane;
  plane.all_up();
  const auto number = plane.report(kA).number;
  plane.config.pools[0].backends.erase(plane.config.pools[0].backends.begin());
  plane.follow();
  plane.run();
  CHECK(plane.last.snapshot->backend(number) == nullptr);
  CHECK(std::count(plane.web().base->begin(), plane.web().base->end(), number) == 0);

  plane.config.pools[0].backends.push_back(backend("d", ip("10.1.0.4")));
  plane.follow();
  plane.run();
  CHECK(plane.report(ip("10.1.0.4")).number != number);
  CHECK(plane.last.snapshot->backend(number) == nullptr);
}

TEST_CASE("a backend that returns is checked afresh and its drain is forgotten") {
  Plane plane;
  plane.all_up();
  plane.member(kA).drain.start(plane.now, std::nullopt);
  const auto backends = plane.config.pools[0].backends;
  plane.config.pools[0].backends.erase(plane.config.pools[0].backends.begin());
  plane.follow();
  plane.config.pools[0].backends = backends;
  plane.follow();
  plane.run();
  CHECK(plane.report(kA).state == BackendState::unchecked);
}

TEST_CASE("when a pool's check is removed its backends come up, when it is added they stay up") {
  Plane plane;
  plane.down(kA);
  plane.config.pools[0].check.clear();
  plane.follow();
  plane.run();
  CHECK(plane.report(kA).state == BackendState::eligible);
  plane.config.pools[0].check = "tcp";
  plane.follow();
  plane.run();
  CHECK(plane.report(kA).state == BackendState::eligible);
  plane.down(kA);
  plane.run();
  CHECK(plane.report(kA).state == BackendState::down);
}

TEST_CASE("more backends than numbers: the configuration is refused and nothing changes") {
  Plane plane;
  plane.all_up();
  const auto held = plane.state.memberships.size();
  Config huge = plane.config;
  for (std::uint32_t i = 0; i < kMaxNumbers; ++i)
    huge.pools[0].backends.push_back(backend("", IpAddress::v4(Be32::from_host(0x0b000000u + i))));
  CHECK_FALSE(follow_config(plane.state, huge, plane.now));
  CHECK(plane.state.memberships.size() == held);
  CHECK(plane.state.backend_numbers.limit() == 3);
}

TEST_CASE("two load balancers with the same configuration in another order have equal digests") {
  Plane one;
  Plane other;
  std::reverse(other.config.pools[0].backends.begin(), other.config.pools[0].backends.end());
  other.state = RuntimeState{.routes = other.state.routes, .ports = other.state.ports};
  other.follow();
  one.all_up();
  other.all_up();
  CHECK(one.last.pools[0].base_digest == other.last.pools[0].base_digest);
  one.down(kA);
  other.down(kA);
  one.run();
  other.run();
  CHECK(one.last.pools[0].effective_digest == other.last.pools[0].effective_digest);
}

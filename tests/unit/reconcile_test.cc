// SPDX-License-Identifier: Apache-2.0
// Which backends take new flows, and which tables come out.
#include <algorithm>

#include <cstdlib>
#include "ctrl/reconcile/reconcile.h"
#include "tests/catch.h"

#include "tests/unit/plane.h"

using namespace holdfast;
using namespace holdfast::plane;

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

TEST_CASE("a weight set at run time makes the tables that the same weight in the file makes") {
  Plane set;
  set.all_up();
  const auto before = set.last.pools[0];
  const auto slots_before = *set.web().base;
  set.member(kB).weight = 40;
  set.run();
  Plane written;
  written.config.pools[0].backends[1].weight = 40;
  written.all_up();

  CHECK(*set.web().base == *written.web().base);
  CHECK(set.last.pools[0].base_digest == written.last.pools[0].base_digest);
  CHECK(set.last.pools[0].base_digest != before.base_digest);
  CHECK(set.report(kB).weight == 40);
  CHECK(set.report(kB).configured_weight == 100);
  CHECK(written.report(kB).configured_weight == 40);
  CHECK(set.report(kB).state == BackendState::eligible);
  // 251 slots by 100 : 40 : 100, each within two.
  CHECK(std::abs(static_cast<int>(set.report(kB).slots) - 42) <= 2);
  CHECK(std::abs(static_cast<int>(set.report(kA).slots) - 105) <= 2);
  // The others give up no slot but the few that Maglev's turns shift.
  std::size_t shifted = 0;
  for (std::size_t slot = 0; slot < slots_before.size(); ++slot) {
    const auto owner = slots_before[slot];
    shifted += owner != set.report(kB).number && (*set.web().base)[slot] != owner;
  }
  CHECK(shifted < 25);

  set.member(kB).weight.reset();
  set.run();
  CHECK(set.last.pools[0].base_digest == before.base_digest);
  CHECK(*set.web().base == slots_before);
}

TEST_CASE("weight 0 at run time ends new flows, keeps placed ones, and says who set it") {
  Plane plane;
  plane.all_up();
  plane.member(kB).weight = 0;
  plane.run();
  CHECK(plane.report(kB).state == BackendState::weight_zero);
  CHECK(plane.report(kB).reason == "weight 0, set by an operator");
  CHECK(plane.report(kB).slots == 0);
  CHECK(plane.report(kB).keeps_tcp);
  CHECK(plane.report(kB).keeps_udp);
  plane.config.pools[0].backends[1].weight = 0;
  plane.member(kB).weight = 7;  // more than the file has
  plane.run();
  CHECK(plane.report(kB).state == BackendState::eligible);
  CHECK(plane.report(kB).slots > 0);
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
  SECTION("and not when all of them have weight 0: then there is no backend") {
    for (auto& config : plane.config.pools[0].backends) config.weight = 0;
    plane.follow();
    plane.run();
    CHECK(plane.report(kA).state == BackendState::draining);
    CHECK(plane.last.pools[0].placement == PoolPlacement::none);
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

TEST_CASE("services get their numbers, pools and rules") {
  Plane plane;
  plane.config.vips.push_back({ip("192.0.2.99")});
  plane.config.pools.push_back(pool("dns", {backend("a", kA)}));
  auto dns = service("dns", "dns", "192.0.2.1", 53);
  dns.protocol = IpProtocol::udp;
  dns.udp_repick_on_drain = true;
  dns.max_share = 0.5;
  dns.embryonic_share = 0.125;
  dns.timeouts = {5s, 120h, 30s, 90s};
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
  CHECK(found->embryonic_share == 0.125);
  CHECK(found->timeouts == FlowTimeouts{5s, 120h, 30s, 90s});
  const auto look = [&](std::string_view vip, IpProtocol protocol, std::uint16_t port) {
    return snapshot.service_table.lookup(ip(vip), protocol, Be16::from_host(port)).service;
  };
  CHECK(look("192.0.2.1", IpProtocol::udp, 53) == number);
  CHECK(look("192.0.2.1", IpProtocol::tcp, 443) == ServiceNumber{0});
  CHECK(look("192.0.2.1", IpProtocol::tcp, 80) == kNoService);
  CHECK(snapshot.service_table.is_vip(ip("192.0.2.99")));
  CHECK(plane.published(kA).pool == PoolNumber{0});
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

// SPDX-License-Identifier: Apache-2.0
#include "ctrl/announce/wanted.h"

#include "ctrl/state/backend_state.h"

#include "tests/catch.h"
#include "tests/unit/plane.h"

namespace holdfast {
namespace {

using namespace plane;

const IpAddress kVip = ip("192.0.2.1");

BackendReport report(BackendState state, std::uint32_t weight = 100) {
  BackendReport result;
  result.state = state;
  result.awaits_check = state == BackendState::unchecked;
  result.weight = weight;
  return result;
}

PoolReport pool_of(std::string name, std::vector<BackendReport> backends) {
  PoolReport result;
  result.name = std::move(name);
  result.backends = std::move(backends);
  return result;
}

/// VIP 192.0.2.1 with services on the pools "web" and "dns", announced.
struct Site {
  Config config = web_config();
  std::vector<PoolReport> pools{pool_of("web", {report(BackendState::eligible)}),
                                pool_of("dns", {report(BackendState::down)})};
  std::string trouble{};
  AnnouncePhase phase = AnnouncePhase::serving;
  std::set<IpAddress> wanted_before{};

  Site() {
    config.services.push_back(service("dns", "dns", "192.0.2.1", 53));
    config.pools.push_back(pool("dns", {}));
    config.bgp = BgpConfig{.next_hop = ip("198.51.100.5")};
  }
  [[nodiscard]] WantedVip wanted() const {
    return wanted_vips(config, pools, trouble, phase, wanted_before).at(kVip);
  }
  void states(std::vector<BackendReport> web, std::vector<BackendReport> dns) {
    pools = {pool_of("web", std::move(web)), pool_of("dns", std::move(dns))};
  }
};

TEST_CASE("a VIP is wanted while any of its pools has an eligible backend") {
  Site site;
  CHECK(site.wanted().announcement);
  CHECK(site.wanted().why_not.empty());
  site.states({report(BackendState::down)}, {report(BackendState::eligible)});
  CHECK(site.wanted().announcement);
  site.states({report(BackendState::down)}, {report(BackendState::down)});
  CHECK_FALSE(site.wanted().announcement);
  CHECK(site.wanted().why_not == "no eligible backend in pools dns, web");
}

TEST_CASE("only eligible backends of weight above 0 count: draining and unchecked ones do not") {
  Site site;
  site.config.services.pop_back();
  site.wanted_before = {kVip};
  for (const auto& backend :
       {report(BackendState::draining), report(BackendState::unchecked),
        report(BackendState::weight_zero, 0), report(BackendState::eligible, 0),
        report(BackendState::neigh_unresolved), report(BackendState::next_hop_lost),
        report(BackendState::path_too_small), report(BackendState::down)}) {
    INFO(name_of(backend.state));
    site.states({backend}, {});
    CHECK_FALSE(site.wanted().announcement);
    CHECK(site.wanted().own);
    CHECK(site.wanted().why_not == "no eligible backend in pool web");
  }
  site.states({report(BackendState::draining), report(BackendState::eligible)}, {});
  CHECK(site.wanted().announcement);
}

TEST_CASE("a VIP without a service is not announced") {
  Site site;
  site.config.services.clear();
  CHECK(site.wanted().why_not == "no service has this VIP");
}

TEST_CASE("no VIP is wanted while the data plane is not ready") {
  Site site;
  site.trouble = "no port is up";
  CHECK_FALSE(site.wanted().announcement);
  CHECK(site.wanted().why_not == "the data plane is not ready: no port is up");
  CHECK_FALSE(site.wanted().held);
}

TEST_CASE("a VIP waits the first time until no first check of its pools is awaited") {
  Site site;
  site.states({report(BackendState::eligible), report(BackendState::unchecked)},
              {report(BackendState::down)});
  CHECK_FALSE(site.wanted().announcement);
  CHECK(site.wanted().own);
  CHECK(site.wanted().why_not == "the first checks of pool web are running");
  site.states({report(BackendState::eligible), report(BackendState::unchecked)},
              {report(BackendState::unchecked)});
  CHECK(site.wanted().why_not == "the first checks of pools dns, web are running");
  site.states({report(BackendState::eligible), report(BackendState::down)},
              {report(BackendState::unchecked)});
  CHECK(site.wanted().why_not == "the first checks of pool dns are running");
  site.states({report(BackendState::eligible), report(BackendState::neigh_unresolved)},
              {report(BackendState::down)});
  CHECK(site.wanted().announcement);
}

TEST_CASE("a backend without slots makes no VIP wait") {
  Site site;
  site.states({report(BackendState::eligible), report(BackendState::unchecked, 0)}, {});
  CHECK(site.wanted().announcement);
}

TEST_CASE("a VIP of other pools does not wait for this pool's first checks") {
  Site site;
  site.config.vips.push_back({ip("192.0.2.9")});
  site.config.services.push_back(service("other", "dns", "192.0.2.9"));
  site.states({report(BackendState::unchecked)}, {report(BackendState::eligible)});
  CHECK_FALSE(site.wanted().announcement);
  const auto all =
      wanted_vips(site.config, site.pools, site.trouble, site.phase, site.wanted_before);
  CHECK(all.at(ip("192.0.2.9")).announcement);
}

TEST_CASE("a backend that comes later takes no VIP back that was wanted before") {
  Site site;
  site.wanted_before = {kVip};
  site.states({report(BackendState::eligible), report(BackendState::unchecked)}, {});
  CHECK(site.wanted().announcement);
}

TEST_CASE("a start with a slow backend: held and not wanted for 10 s, then wanted without a gap") {
  Plane plane;
  plane.config.bgp = BgpConfig{.next_hop = ip("198.51.100.5")};
  const Instant start = plane.now;
  const auto at = [&](Instant time) {
    plane.now = time;
    plane.run();
    const auto phase =
        time - start < kFirstChecks ? AnnouncePhase::starting : AnnouncePhase::serving;
    return wanted_vips(plane.config, plane.last.pools, {}, phase, {}).at(kVip);
  };
  plane.up(kA);
  plane.up(kB);
  for (auto time = start; time < start + 10s; time += 250ms) {
    INFO(time.count());
    CHECK(at(time).held);
    CHECK(at(time).why_not == "the first checks of pool web are running");
    CHECK(plane.published(kC).awaits_check);
  }
  CHECK(plane.last.next_deadline == start + 10s);
  SECTION("kC stays silent") {
    CHECK(at(start + 10s).announcement);
    CHECK(plane.report(kC).state == BackendState::unchecked);
    CHECK_FALSE(plane.published(kC).awaits_check);
  }
  SECTION("kC answers in the end") {
    plane.up(kC);
    CHECK(at(start + 9s).announcement);
  }
  SECTION("kC fails") {
    plane.down(kC);
    CHECK(at(start + 9s).announcement);
  }
  SECTION("all others go down: nothing is held any more at the end") {
    plane.down(kA);
    plane.down(kB);
    CHECK(at(start + 9s).held);
    CHECK_FALSE(at(start + 10s).held);
    CHECK(at(start + 10s).why_not == "no eligible backend in pool web");
  }
}

TEST_CASE("while the daemon starts, a route of an earlier run is held until the first checks") {
  Site site;
  site.phase = AnnouncePhase::starting;
  site.trouble = "worker 0 has not begun";
  CHECK(site.wanted().held);
  site.trouble.clear();
  CHECK(site.wanted().announcement);
  site.states({report(BackendState::unchecked)}, {report(BackendState::down)});
  CHECK(site.wanted().held);
  CHECK_FALSE(site.wanted().announcement);
  site.states({report(BackendState::down)}, {report(BackendState::down)});
  CHECK_FALSE(site.wanted().held);
  site.phase = AnnouncePhase::serving;
  site.trouble = "no port is up";
  CHECK_FALSE(site.wanted().held);
}

TEST_CASE("what is announced comes from the configuration") {
  Site site;
  site.config.vips[0].communities = {5, kNoAdvertise};
  site.config.vips[0].med = 7;
  site.config.vips[0].prepend = 3;
  CHECK(site.wanted().announcement == Announcement{.vip = kVip,
                                                   .next_hop = ip("198.51.100.5"),
                                                   .communities = {5, kNoAdvertise},
                                                   .med = 7,
                                                   .prepend = 3});
}

TEST_CASE("an IPv6 VIP has the IPv6 next hop") {
  Site site;
  site.config.vips = {{ip("2001:db8::10")}};
  site.config.services[0].vips = {ip("2001:db8::10")};
  site.config.bgp->next_hop_v6 = ip("2001:db8:1::5");
  const auto wanted = wanted_vips(site.config, site.pools, {}, site.phase, {});
  CHECK(wanted.at(ip("2001:db8::10")).announcement->next_hop == ip("2001:db8:1::5"));
}

TEST_CASE("leaving adds the graceful shutdown community once, in its place") {
  Site site;
  site.phase = AnnouncePhase::leaving;
  site.config.vips[0].communities = {5, kNoAdvertise};
  CHECK(site.wanted().announcement->communities ==
        std::vector<std::uint32_t>{5, kGracefulShutdown, kNoAdvertise});
  site.config.vips[0].communities = {kGracefulShutdown};
  CHECK(site.wanted().announcement->communities == std::vector<std::uint32_t>{kGracefulShutdown});
}

TEST_CASE("when the daemon has left nothing is wanted, and what is there is not held") {
  Site site;
  site.phase = AnnouncePhase::withdrawn;
  site.states({report(BackendState::unchecked)}, {});
  CHECK(site.wanted().why_not == "stopping");
  CHECK(site.wanted().own);
  CHECK_FALSE(site.wanted().held);
}

TEST_CASE("what is not ours to announce is neither added nor removed") {
  Site site;
  site.config.vips[0].announce = false;
  CHECK_FALSE(site.wanted().own);
  CHECK(site.wanted().why_not == "announce = false");
  site.config.bgp.reset();
  CHECK_FALSE(site.wanted().own);
  CHECK(site.wanted().why_not == "there is no [bgp]");
}

TEST_CASE("an announcement that would harm the session is not wanted, whoever made it") {
  Site site;
  site.config.bgp->next_hop.reset();  // the parser refuses that
  CHECK_FALSE(site.wanted().announcement);
  CHECK(site.wanted().why_not == "0.0.0.0 can not be its next hop");

  const Announcement good{.vip = kVip, .next_hop = ip("198.51.100.5"), .communities = {1, 2}};
  CHECK(why_invalid(good).empty());
  const auto with = [&](auto change) {
    auto bad = good;
    change(bad);
    return why_invalid(bad);
  };
  CHECK_FALSE(with([](auto& bad) { bad.next_hop = ip("2001:db8::1"); }).empty());
  CHECK_FALSE(with([](auto& bad) { bad.next_hop = ip("224.0.0.1"); }).empty());
  CHECK_FALSE(with([](auto& bad) { bad.next_hop = bad.vip; }).empty());
  CHECK_FALSE(with([](auto& bad) { bad.vip = ip("0.0.0.0"); }).empty());
  CHECK_FALSE(with([](auto& bad) { bad.communities = {2, 1}; }).empty());
  CHECK_FALSE(with([](auto& bad) { bad.communities = {1, 1}; }).empty());
  CHECK_FALSE(with([](auto& bad) { bad.prepend = 11; }).empty());
}

TEST_CASE("the data plane is ready when every worker moves with a snapshot and a port is up") {
  DataPlaneStats stats;
  stats.workers = {{.worker = 0, .heartbeat = 1, .snapshot_generation = 1},
                   {.worker = 1, .heartbeat = 1, .snapshot_generation = 1}};
  stats.ports = {{.name = "a", .up = true}, {.name = "b"}};
  WorkerPulse pulse;
  pulse.add(1s, stats.workers);
  CHECK(data_plane_trouble(stats, pulse).empty());

  SECTION("a worker that has not taken up a snapshot") {
    stats.workers[1].snapshot_generation = 0;
    CHECK(data_plane_trouble(stats, pulse) == "worker 1 has not begun");
  }
  SECTION("no port with a link") {
    stats.ports[0].up = false;
    CHECK(data_plane_trouble(stats, pulse) == "no port is up");
  }
  SECTION("a worker that no longer moves") {
    stats.workers[0].heartbeat = 2;
    pulse.add(5s, stats.workers);
    CHECK(data_plane_trouble(stats, pulse) == "1 of 2 workers do not move");
  }
  SECTION("no worker at all") {
    CHECK(data_plane_trouble({}, WorkerPulse{}) == "there is no worker");
  }
}

}  // namespace
}  // namespace holdfast

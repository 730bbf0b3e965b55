// SPDX-License-Identifier: Apache-2.0
// The announcer against a little gobgpd in simulated time: what is wanted, what is in the RIB, and
// what was sent to peers.
#include "ctrl/announce/announcer.h"

#include "tests/unit/announcer_world.h"

namespace holdfast {
namespace {

using namespace world;

TEST_CASE("a wanted VIP is in the speaker's RIB and sent to every peer at once") {
  World world;
  world.pass(3s);
  CHECK(world.speaker.rib.empty());
  world.want(kVip4);
  world.want(kVip6);
  world.pass(10ms);
  CHECK(world.speaker.rib ==
        std::map<IpAddress, Announcement>{{kVip4, route_of(kVip4)}, {kVip6, route_of(kVip6)}});
  CHECK(world.last_own_as == 64512);
  // What is shown is only what was read back.
  CHECK(world.route(kVip4).rib() == RibState::absent);
  world.pass(300ms);
  CHECK(world.route(kVip4).rib() == RibState::same);
  CHECK(world.route(kVip6).rib() == RibState::same);
  CHECK(world.route(kVip4).sent_to(kPeer));
  CHECK(world.route(kVip6).sent_to(kPeer));
}

TEST_CASE("a VIP that is no longer wanted is withdrawn at once, and no other") {
  auto world = announced();
  world.not_wanted(kVip4);
  world.pass(10ms);
  CHECK_FALSE(world.speaker.rib.contains(kVip4));
  CHECK(world.speaker.rib.contains(kVip6));
  CHECK(world.speaker.removals == 1);
  world.pass(300ms);
  CHECK(world.route(kVip4).rib() == RibState::absent);
  CHECK_FALSE(world.route(kVip4).sent_to(kPeer));
  CHECK(world.logged("VIP 203.0.113.10: to be withdrawn: no eligible backend in pool web"));
}

TEST_CASE(
    "where all is well nothing is sent, only read: each second who it is, each 10 s the RIB") {
  auto world = announced();
  const auto adds = world.speaker.adds;
  const auto reads = world.speaker.rib_reads;
  world.pass(100s);
  CHECK(world.speaker.adds == adds);
  CHECK(world.speaker.removals == 0);
  CHECK(world.speaker.rib_reads - reads == 20);  // of two families
}

TEST_CASE("an own path that is there already as wanted is left alone") {
  World world;
  world.speaker.rib[kVip4] = route_of(kVip4);
  world.want(kVip4);
  world.pass(5s);
  CHECK(world.speaker.adds == 0);
  CHECK(world.route(kVip4).rib() == RibState::same);
}

TEST_CASE("a path with other attributes is replaced") {
  auto world = announced();
  SECTION("because something else is wanted") {
    auto other = route_of(kVip4);
    other.communities = {kGracefulShutdown};
    world.want(other);
    CHECK(world.route(kVip4).rib() == RibState::other);
    world.pass(10ms);
    CHECK(world.speaker.rib[kVip4] == other);
  }
  SECTION("because somebody changed it") {
    world.speaker.rib[kVip4].med = 77;
    world.pass(10s);
    CHECK(world.speaker.rib[kVip4] == route_of(kVip4));
  }
}

TEST_CASE("a path of an earlier run that is not wanted is removed, unless it is held") {
  World world;
  world.speaker.rib[kVip4] = route_of(kVip4);
  world.wanted[kVip4] = {.why_not = "starting", .own = true, .held = true};
  world.announcer.want(world.wanted, world.now);
  world.pass(4s);
  CHECK(world.speaker.rib.contains(kVip4));
  CHECK(world.speaker.removals == 0);
  CHECK(world.logged("VIP 203.0.113.10: in gobgpd's RIB from an earlier run: it stays while"));
  CHECK_FALSE(world.logged("but not wanted"));
  SECTION("and the log says what it waits for next") {
    world.wanted[kVip4].why_not = "the first checks of pool web are running";
    world.announcer.want(world.wanted, world.now);
    world.pass(6s);
    CHECK(world.logged(
        "VIP 203.0.113.10: not announced yet: the first checks of pool web are running"));
    CHECK(world.speaker.removals == 0);
    CHECK(world.announcer.alarms().empty());
  }
  SECTION("and when it becomes wanted nothing needs to be sent") {
    world.want(kVip4);
    world.pass(5s);
    CHECK(world.speaker.adds == 0);
  }
  SECTION("but once it was wanted it is not held any more") {
    world.want(kVip4);
    world.pass(1s);
    world.wanted[kVip4] = {.why_not = "no port is up", .own = true, .held = true};
    world.announcer.want(world.wanted, world.now);
    world.pass(10ms);
    CHECK_FALSE(world.speaker.rib.contains(kVip4));
  }
  SECTION("and when it does not become wanted in time it is removed") {
    world.not_wanted(kVip4);
    world.pass(10ms);
    CHECK_FALSE(world.speaker.rib.contains(kVip4));
  }
}

TEST_CASE("paths that are not ours are never touched") {
  World world;
  world.speaker.rib[kForeign] = route_of(kForeign);
  world.wanted[kForeign] = {.why_not = "announce = false", .own = false};
  world.want(kVip4);
  world.pass(20s);
  world.not_wanted(kVip4);
  world.pass(20s);
  world.kill();
  world.pass(1s);
  world.start_again();
  world.pass(20s);
  CHECK_FALSE(world.speaker.touched.contains(kForeign));
  CHECK(world.announcer.alarms().empty());
}

TEST_CASE("an add that the speaker ignores is seen, tried again more and more seldom, and shown") {
  World world;
  world.speaker.ignores_adds = true;
  world.want(kVip4);
  world.pass(4s);
  CHECK(world.announcer.alarms().empty());
  world.pass(2s);
  REQUIRE(world.announcer.alarms().size() == 1);
  CHECK(world.announcer.alarms()[0].find("VIP 203.0.113.10 is wanted, but not in gobgpd's RIB: "
                                         "gobgpd took the route") == 0);
  const auto adds = world.speaker.adds;
  CHECK(adds >= 4);
  world.pass(60s);
  CHECK(world.speaker.adds - adds <= 60 / 5 + 2);
  CHECK(world.speaker.adds - adds >= 60 / 5 - 2);
  world.speaker.ignores_adds = false;
  world.pass(5500ms);
  CHECK(world.agree());
  CHECK(world.announcer.alarms().empty());
  CHECK(world.logged("VIP 203.0.113.10: alarm over"));
}

TEST_CASE("an add that the speaker refuses is shown, tried again, and holds no other up") {
  World world;
  world.speaker.refuses_adds = true;
  world.want(kVip4);
  world.pass(8s);
  CHECK(world.route(kVip4).trouble() == "invalid path");
  CHECK(world.logged("refuses the change: invalid path"));
  REQUIRE(world.announcer.alarms().size() == 1);
  CHECK(world.announcer.alarms()[0] ==
        "VIP 203.0.113.10 is wanted, but not in gobgpd's RIB: invalid path");
  world.speaker.refuses_adds = false;
  world.want(kVip6);
  world.pass(50ms);
  CHECK(world.speaker.rib.contains(kVip6));
  world.pass(5s);
  CHECK(world.agree());
  CHECK(world.route(kVip4).trouble().empty());
}

TEST_CASE("a new wish is not made to wait for the failures of an old one") {
  World world;
  world.speaker.refuses_adds = true;
  world.want(kVip4);
  world.pass(30s);
  world.speaker.refuses_adds = false;
  auto other = route_of(kVip4);
  other.med = 5;
  world.want(other);
  world.pass(10ms);
  CHECK(world.speaker.rib[kVip4] == other);
}

TEST_CASE("a path that somebody else deletes comes back with the next read") {
  auto world = announced();
  world.speaker.rib.erase(kVip4);
  world.pass(10s + 10ms);
  CHECK(world.agree());
}

TEST_CASE("a removal that does nothing is an alarm") {
  auto world = announced();
  world.speaker.ignores_removals = true;
  world.not_wanted(kVip4);
  world.pass(6s);
  REQUIRE(world.announcer.alarms().size() == 1);
  CHECK(world.announcer.alarms()[0].find("VIP 203.0.113.10 is in gobgpd's RIB, but not wanted") ==
        0);
  CHECK(world.announcer.anything_announced() == Presence::maybe);
}

TEST_CASE("a path that is not sent to an established peer is an alarm that names the peer") {
  World world;
  world.speaker.not_sent.insert(kVip4);
  world.want(kVip4);
  world.pass(4s);
  CHECK(world.announcer.alarms().empty());
  world.pass(2s);
  CHECK(world.announcer.alarms() ==
        std::vector<std::string>{"VIP 203.0.113.10 is wanted, but was not sent to peer 192.0.2.1"});
  world.speaker.not_sent.clear();
  world.pass(10s);
  CHECK(world.announcer.alarms().empty());
}

TEST_CASE("a route that asks to be told to nobody is not missed at peers") {
  World world;
  world.speaker.not_sent.insert(kVip4);
  auto silent = route_of(kVip4);
  silent.communities = {kNoAdvertise};
  world.want(silent);
  world.pass(20s);
  CHECK(world.announcer.alarms().empty());
}

TEST_CASE("a peer is judged only in the families that its session uses") {
  World world;
  world.speaker.peers.clear();
  world.speaker.connect({.address = kPeer, .as = 64513, .established = true, .ipv4 = true});
  world.want(kVip4);
  world.want(kVip6);
  world.pass(20s);
  CHECK(world.announcer.alarms().empty());
  CHECK(world.route(kVip4).sent_to(kPeer));
  CHECK_FALSE(world.route(kVip6).sent_to(kPeer));
}

TEST_CASE("a read that was asked before a change says nothing of it") {
  // The RIB is read at the same time as the removal travels; the answers cross.
  auto world = announced();
  world.travel = 100ms;
  world.pass(9s);
  for (int i = 0; i < 20; ++i) {
    world.not_wanted(kVip4);
    world.pass(70ms);
    world.want(kVip4);
    world.pass(70ms);
  }
  world.pass(2s);
  CHECK(world.agree());
  CHECK(world.route(kVip4).trouble().empty());
}

TEST_CASE("a thousand VIPs come and go within 2 s, with few reads") {
  World world;
  std::vector<IpAddress> vips;
  for (unsigned i = 0; i < 1000; ++i)
    vips.push_back(IpAddress::v4(Be32::from_host(0xcb007100 + i)));
  for (const auto& vip : vips) world.wanted[vip] = {.announcement = route_of(vip), .own = true};
  world.travel = 200us;
  world.announcer.want(world.wanted, world.now);
  world.pass(2s);
  CHECK(world.agree());
  world.pass(5s);
  CHECK(world.announcer.alarms().empty());
  CHECK(world.speaker.rib_reads < 60);
  for (const auto& vip : vips) world.wanted[vip] = {.why_not = "stopping", .own = true};
  world.announcer.want(world.wanted, world.now);
  world.pass(2s);
  CHECK(world.speaker.rib.empty());
}

TEST_CASE("what is still announced is known until a read shows that it is gone") {
  auto world = announced();
  CHECK(world.announcer.anything_announced() == Presence::maybe);
  world.not_wanted(kVip4);
  world.not_wanted(kVip6);
  world.pass(50ms);
  CHECK(world.speaker.rib.empty());
  CHECK(world.announcer.anything_announced() == Presence::maybe);
  world.pass(250ms);
  CHECK(world.announcer.anything_announced() == Presence::absent);
}

}  // namespace
}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// The announcer when the daemon ends: what may still be announced is removed, whatever is known of
// the speaker.
#include "tests/unit/announcer_world.h"

namespace holdfast {
namespace {

using namespace world;

/// A world in which an earlier run left both routes; nothing was read yet.
World left_behind() {
  World world;
  for (const auto& vip : {kVip4, kVip6}) {
    world.speaker.rib[vip] = route_of(vip);
    world.wanted[vip] = {.why_not = "starting", .own = true, .held = true};
  }
  world.announcer.want(world.wanted, world.now);
  return world;
}

TEST_CASE("a stop before the speaker's first answer withdraws what an earlier run left") {
  auto world = left_behind();
  CHECK(world.announcer.anything_announced() == Presence::unknown);
  world.leave();
  CHECK(world.announcer.anything_announced() == Presence::unknown);
  world.pass(20ms);
  CHECK(world.speaker.rib.empty());
  CHECK(world.announcer.anything_announced() == Presence::maybe);
  world.pass(300ms);
  CHECK(world.announcer.anything_announced() == Presence::absent);
  CHECK(world.blind_removals == 0);
}

TEST_CASE("a stop before the speaker's first answer sends nothing when nothing was left") {
  World world;
  world.leave();
  world.pass(20ms);
  CHECK(world.announcer.anything_announced() == Presence::absent);
  CHECK(world.speaker.removals == 0);
}

TEST_CASE("a RIB that can not be read at the stop is told to remove all that may be there") {
  auto world = left_behind();
  world.speaker.hides_rib = true;
  world.leave();
  world.pass(2s);
  CHECK(world.speaker.rib.empty());
  CHECK(world.announcer.anything_announced() == Presence::maybe);
}

TEST_CASE("a speaker that hangs at the stop finds the removals when it goes on") {
  SECTION("with routes of this run") {
    auto world = announced();
    world.freeze();
    world.pass(2s);
    REQUIRE(world.announcer.link().state() == SpeakerState::hung);
    world.leave();
    world.pass(2s);
    CHECK(world.announcer.anything_announced() == Presence::maybe);
    // The daemon has ended.
    world.thaw();
    CHECK(world.speaker.rib.empty());
    CHECK_FALSE(world.speaker.touched.contains(kForeign));
  }
  SECTION("that hangs since the stop") {
    auto world = announced();
    world.leave();
    world.freeze();
    world.pass(2s);
    world.thaw();
    CHECK(world.speaker.rib.empty());
  }
  SECTION("with routes of an earlier run") {
    auto world = left_behind();
    world.freeze();
    world.leave();
    world.pass(2s);
    CHECK(world.announcer.anything_announced() == Presence::maybe);
    world.thaw();
    CHECK(world.speaker.rib.empty());
  }
}

TEST_CASE("removals left with a speaker that hangs are repeated, but not for ever") {
  auto world = announced();
  world.freeze();
  world.pass(20s);
  CHECK(world.blind_removals == 0);  // they are for the end only
  world.leave();
  world.pass(1s);
  CHECK(world.blind_removals >= 2 * 5);
  world.pass(60s);
  CHECK(world.blind_removals == 2 * Announcer::kBlindRounds);
}

TEST_CASE("what is still wanted, known to be absent or not ours is not removed blindly") {
  World world;
  world.speaker.rib[kForeign] = route_of(kForeign);
  world.wanted[kForeign] = {.why_not = "announce = false", .own = false};
  world.want(kVip4);
  world.pass(5s);
  world.freeze();
  world.pass(2s);
  world.announcer.leave();
  world.pass(5s);
  CHECK(world.blind_removals == 0);
}

TEST_CASE("a speaker that returns during the stop confirms the withdrawal") {
  auto world = announced();
  world.freeze();
  world.pass(2s);
  world.leave();
  world.pass(5s);
  CHECK(world.announcer.anything_announced() == Presence::maybe);
  world.held_back.clear();  // it did none of them
  world.thaw();
  world.pass(2s);
  CHECK(world.speaker.rib.empty());
  CHECK(world.announcer.anything_announced() == Presence::absent);
}

TEST_CASE("a speaker without BGP has no routes, and is not waited for") {
  SECTION("from the start") {
    World world;
    world.speaker.identity.as = 0;
    world.want(kVip4);
    world.pass(1s);
    CHECK(world.announcer.anything_announced() == Presence::absent);
  }
  SECTION("since somebody stopped BGP in it") {
    auto world = announced();
    world.speaker.identity.as = 0;
    world.speaker.rib.clear();
    world.pass(2s);
    CHECK(world.announcer.anything_announced() == Presence::absent);
    world.leave();
    world.pass(2s);
    CHECK(world.speaker.removals == 0);
  }
}

TEST_CASE("a way to the speaker that is broken says nothing of its routes") {
  World world;
  world.announcer.on_lost({.message = "No route to host", .code = "unreachable"}, world.now);
  CHECK(world.announcer.link().state() == SpeakerState::unreachable);
  CHECK(world.announcer.anything_announced() == Presence::unknown);
  SECTION("a port that nobody listens on does") {
    world.announcer.on_lost({.message = "x: Connection refused", .code = "unreachable"}, world.now);
    CHECK(world.announcer.anything_announced() == Presence::absent);
  }
  SECTION("so does a Unix socket that is not there") {
    world.announcer.on_lost({.message = "x: No such file or directory", .code = "unreachable"},
                            world.now);
    CHECK(world.announcer.anything_announced() == Presence::absent);
  }
}

}  // namespace
}  // namespace holdfast

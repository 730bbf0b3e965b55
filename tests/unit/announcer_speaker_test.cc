// SPDX-License-Identifier: Apache-2.0
// The announcer when the speaker or its sessions come and go, hang, or answer late or never.
#include "tests/unit/announcer_world.h"

namespace holdfast {
namespace {

using namespace world;

TEST_CASE("a speaker that was killed and starts again empty has our paths within 2 s") {
  auto world = announced();
  world.kill();
  world.pass(30s);
  CHECK(world.announcer.link().state() == SpeakerState::unreachable);
  CHECK(world.announcer.link().why() == "connection refused");
  CHECK(world.announcer.peers().empty());
  CHECK(world.announcer.alarms() ==
        std::vector<std::string>{"VIPs are not announced: gobgpd at test is unreachable: "
                                 "connection refused; start it, or mend `gobgp` in [bgp]"});
  CHECK(world.announcer.warning().empty());  // the alarm says it
  world.start_again();
  world.pass(2s);
  CHECK(world.agree());
  CHECK(world.announcer.link().up());
  CHECK(world.announcer.link().since() >= world.now - 2s);
  world.pass(500ms);
  CHECK(world.route(kVip4).rib() == RibState::same);
}

TEST_CASE("a restart too quick to be seen any other way is told by the stream of news") {
  auto world = announced();
  world.pass(1s - 100ms);  // between two identifies
  world.speaker.restart_empty();
  world.reconnect = 20ms;
  world.stream = false;
  world.next_connect = world.now + 20ms;
  world.pass(100ms);
  CHECK(world.agree());
}

TEST_CASE("a restart that nobody told of is found by the full read") {
  auto world = announced();
  world.speaker.restart_empty();
  world.pass(10s + 10ms);
  CHECK(world.agree());
}

TEST_CASE("a speaker that is away is a warning at once, until an alarm says it") {
  auto world = announced();
  CHECK(world.announcer.warning().empty());
  world.kill();
  world.pass(2s);
  CHECK(world.announcer.alarms().empty());
  CHECK(world.announcer.warning() ==
        "gobgpd at test is unreachable: connection refused; start it, or mend `gobgp` in [bgp]");
  world.pass(20s);
  CHECK_FALSE(world.announcer.alarms().empty());
  CHECK(world.announcer.warning().empty());
}

TEST_CASE("a speaker that hangs is named within 2 s, and repaired within 2 s of its return") {
  auto world = announced();
  world.freeze();
  world.pass(2s);
  CHECK(world.announcer.link().state() == SpeakerState::hung);
  world.not_wanted(kVip6);
  world.pass(20s);
  CHECK(world.announcer.alarms() ==
        std::vector<std::string>{
            "VIPs are not announced: gobgpd at test is hung: deadline exceeded; restart it if that "
            "lasts"});
  world.speaker.rib.erase(kVip4);
  world.thaw();
  world.pass(2s);
  CHECK(world.agree());
  CHECK(world.announcer.alarms().empty());
}

TEST_CASE("a new wish is not told as something odd in the RIB") {
  auto world = announced();
  world.freeze();
  world.pass(3s);
  world.thaw();
  world.pass(3s);  // read anew, as it was
  auto other = route_of(kVip4);
  other.communities = {kGracefulShutdown};
  world.want(other);
  world.not_wanted(kVip6);
  world.pass(1s);
  CHECK_FALSE(world.logged("with other attributes than wanted"));
  CHECK_FALSE(world.logged("but not wanted"));
  CHECK(world.logged("VIP 2001:db8::10: withdrawn"));
}

TEST_CASE("a session alarm that ends with the speaker itself does not speak of a session") {
  auto world = announced();
  world.establish(false);
  world.pass(7s);
  world.kill();
  world.pass(3s);
  CHECK(world.logged("alarm over: it is away itself"));
  CHECK_FALSE(world.logged("a session is established"));
}

TEST_CASE("an error that names the speaker is not made to name it twice") {
  auto world = announced();
  world.announcer.on_lost({.message = "gobgpd at test is gone", .code = "unreachable"}, world.now);
  CHECK(world.announcer.link().why() == "is gone");
}

TEST_CASE("while the speaker is away nothing but its identity is asked for") {
  auto world = announced();
  world.freeze();
  world.pass(5s);
  world.not_wanted(kVip4);
  world.want(kVip6);
  world.pass(10s);
  for (const auto& [kind, count] : world.open) CHECK(count <= (kind == 0 ? 1U : 0U));
}

TEST_CASE("a speaker in which BGP is not started is said to be so, and asked again") {
  World world;
  world.speaker.identity.as = 0;
  world.want(kVip4);
  world.pass(10s);
  CHECK(world.announcer.link().state() == SpeakerState::not_started);
  CHECK(world.speaker.rib_reads == 0);
  CHECK(world.logged("BGP is not started in it"));
  world.speaker.identity.as = 64512;
  world.pass(400ms);
  CHECK(world.agree());
}

TEST_CASE("a session that comes and goes is followed, and without any there is an alarm") {
  auto world = announced();
  world.establish(false);
  world.pass(100ms);
  CHECK_FALSE(world.route(kVip4).sent_to(kPeer));
  CHECK_FALSE(world.announcer.peers().at(kPeer).peer.established);
  CHECK(world.logged("peer 192.0.2.1 (AS 64513): session lost"));
  world.pass(6s);
  CHECK(world.announcer.alarms() ==
        std::vector<std::string>{
            "VIPs are announced to nobody: gobgpd at test has no established session"});
  world.establish(true);
  world.pass(100ms);
  CHECK(world.announcer.alarms().empty());
  CHECK(world.route(kVip4).sent_to(kPeer));
}

TEST_CASE("the state of a session is found by reading, even when no news came") {
  auto world = announced();
  world.speaker.peers.at(kPeer).established = false;
  world.pass(10s + 10ms);
  CHECK_FALSE(world.announcer.peers().at(kPeer).peer.established);
}

TEST_CASE("an answer that comes for an older question changes nothing") {
  auto world = announced();
  world.pass(500ms);  // between two questions
  const auto rib = world.speaker.rib;
  for (AskNumber number = 0; number < 200; ++number) {
    world.announcer.answered(number, Result<BgpIdentity>(BgpIdentity{.as = 1}), world.now);
    world.announcer.answered(number, Result<std::vector<BgpPeer>>(), world.now);
    world.announcer.answered(number, Result<std::vector<Announcement>>(), world.now);
    world.announcer.answered(number, Result<std::vector<IpAddress>>(), world.now);
    world.announcer.answered(number, Result<void>(), world.now);
  }
  world.pass(1ms);
  CHECK(world.announcer.link().identity().as == 64512);
  CHECK(world.route(kVip4).rib() == RibState::same);
  CHECK(world.speaker.rib == rib);
}

TEST_CASE("a question that is never answered is given up, and all goes on") {
  World world;
  world.lose_answers = true;
  world.want(kVip4);
  world.pass(20s);
  CHECK(world.announcer.link().state() == SpeakerState::hung);
  world.lose_answers = false;
  world.pass(5s);
  CHECK(world.agree());
}

TEST_CASE("a RIB that can not be read keeps no VIP from being announced or withdrawn") {
  World world;
  world.speaker.hides_rib = true;
  world.want(kVip4);
  world.pass(3s);
  CHECK(world.speaker.rib.contains(kVip4));
  world.pass(10s);
  REQUIRE(world.announcer.alarms().size() == 1);
  CHECK(world.announcer.alarms()[0].find("gobgpd's RIB can not be read") != std::string::npos);
  world.not_wanted(kVip4);
  world.pass(10ms);
  CHECK_FALSE(world.speaker.rib.contains(kVip4));
}

TEST_CASE("while a RIB can not be read, what is lost comes back and what is not wanted goes") {
  World world;
  world.speaker.hides_rib = true;
  world.want(kVip4);
  world.pass(15s);
  REQUIRE(world.agree());
  world.speaker.rib.erase(kVip4);
  world.speaker.rib[kVip6] = route_of(kVip6);
  world.pass(10s + 10ms);
  CHECK(world.agree());
  const auto adds = world.speaker.adds;
  const auto removals = world.speaker.removals;
  world.pass(60s);
  CHECK(world.speaker.adds - adds == 6);
  CHECK(world.speaker.removals - removals == 6);
  SECTION("but what is held is left alone") {
    world.wanted[kVip6] = {.why_not = "starting", .own = true, .held = true};
    world.announcer.want(world.wanted, world.now);
    world.speaker.rib[kVip6] = route_of(kVip6);
    world.pass(30s);
    CHECK(world.speaker.rib.contains(kVip6));
  }
  SECTION("and when it can be read again nothing needs to be sent") {
    world.speaker.hides_rib = false;
    world.pass(11s);
    const auto before = world.speaker.adds;
    world.pass(60s);
    CHECK(world.speaker.adds == before);
  }
}

TEST_CASE("a dead speaker's routes count as announced until it is seen again") {
  auto world = announced();
  world.kill();
  world.not_wanted(kVip4);
  world.not_wanted(kVip6);
  world.pass(5s);
  CHECK(world.announcer.anything_announced() == Presence::maybe);
  world.start_again();
  world.pass(2s);
  CHECK(world.announcer.anything_announced() == Presence::absent);
}

TEST_CASE("with no speaker from the start nothing counts as announced") {
  World world;
  world.kill();
  world.want(kVip4);
  world.pass(20s);
  CHECK(world.announcer.anything_announced() == Presence::absent);
}

}  // namespace
}  // namespace holdfast

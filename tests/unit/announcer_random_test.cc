// SPDX-License-Identifier: Apache-2.0
// Whatever happens to the speaker and to what is wanted: once it is left alone the RIB becomes what
// is wanted within the bound, and no foreign path was ever touched.
#include <random>

#include "tests/sanitized.h"
#include "tests/unit/announcer_world.h"

namespace holdfast {
namespace {

using namespace world;

class Chaos {
 public:
  explicit Chaos(unsigned seed) : random_(seed) {
    for (unsigned i = 0; i < 3; ++i) {
      vips_.push_back(IpAddress::v4(Be32::from_host(0xcb007110 + i)));
      auto bytes = kVip6.bytes();
      bytes[15] = static_cast<std::uint8_t>(0x20 + i);
      vips_.push_back(IpAddress::v6(bytes));
    }
    for (const auto& vip : vips_) world_.not_wanted(vip);
    world_.wanted[kForeign] = {.why_not = "announce = false", .own = false};
    world_.speaker.rib[kForeign] = route_of(kForeign);
    world_.speaker.connect(
        {.address = ip("2001:db8:1::1"), .as = 64514, .established = true, .ipv6 = true});
  }

  void run() {
    for (int i = 0; i < 60; ++i) {
      one_event();
      world_.pass(std::chrono::milliseconds(below(3000)));
      CHECK_FALSE(world_.speaker.touched.contains(kForeign));
    }
    heal();
    // Back-off and full read are over by then; the stream comes within a second.
    world_.pass(2s);
    const bool quick = world_.agree();
    world_.pass(10s);
    CHECK(world_.agree());
    CHECK((quick || !returned_));
    world_.pass(10s);
    CHECK(world_.announcer.alarms().empty());
    CHECK_FALSE(world_.speaker.touched.contains(kForeign));
    const auto adds = world_.speaker.adds;
    const auto removals = world_.speaker.removals;
    world_.pass(60s);
    CHECK(world_.speaker.adds == adds);
    CHECK(world_.speaker.removals == removals);
  }

 private:
  unsigned below(unsigned bound) {
    return std::uniform_int_distribution<unsigned>(0, bound - 1)(random_);
  }
  const IpAddress& some_vip() { return vips_[below(static_cast<unsigned>(vips_.size()))]; }

  void one_event() {
    auto& speaker = world_.speaker;
    switch (below(14)) {
      case 0:
      case 1:
        world_.want(some_vip());
        break;
      case 2: {
        auto route = route_of(some_vip());
        route.med = below(3);
        route.prepend = static_cast<std::uint8_t>(below(3));
        world_.want(route);
        break;
      }
      case 3:
        world_.not_wanted(some_vip());
        break;
      case 4:
        world_.kill();
        break;
      case 5:
        if (speaker.life == SpeakerModel::Life::absent) world_.start_again();
        break;
      case 6:
        if (speaker.life == SpeakerModel::Life::running) world_.freeze();
        break;
      case 7:
        if (speaker.life == SpeakerModel::Life::hung) world_.thaw();
        break;
      case 8:
        speaker.ignores_adds = !speaker.ignores_adds;
        break;
      case 9:
        speaker.ignores_removals = !speaker.ignores_removals;
        break;
      case 10:
        speaker.rib.erase(some_vip());
        break;
      case 11:
        speaker.refuses_adds = !speaker.refuses_adds;
        break;
      case 12:
        speaker.identity.as = speaker.identity.as == 0 ? 64512 : 0;
        break;
      case 13:
        world_.establish(below(2) == 0);
        world_.travel = std::chrono::milliseconds(1 + below(200));
        break;
    }
  }

  /// All faults end. returned_: the speaker itself was away, so that everything is read anew.
  void heal() {
    auto& speaker = world_.speaker;
    returned_ = speaker.life != SpeakerModel::Life::running;
    speaker.ignores_adds = speaker.ignores_removals = speaker.refuses_adds = false;
    speaker.identity.as = 64512;
    world_.travel = 1ms;
    if (speaker.life == SpeakerModel::Life::absent) world_.start_again();
    world_.thaw();
    world_.establish(true);
  }

  std::mt19937 random_;
  World world_;
  std::vector<IpAddress> vips_;
  bool returned_ = false;
};

TEST_CASE(
    "after any faults the RIB is as wanted, in 2 s of the speaker's return, foreign paths "
    "never touched") {
  for (unsigned seed = 1; seed <= rounds(200); ++seed) {
    INFO("seed " << seed);
    Chaos(seed).run();
  }
}

}  // namespace
}  // namespace holdfast

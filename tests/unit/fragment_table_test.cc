// SPDX-License-Identifier: Apache-2.0
#include "lb/fragment/fragment_table.h"

#include <utility>
#include <vector>

#include "tests/catch.h"
#include "tests/unit/fragment_fixture.h"

namespace holdfast {
namespace {

/// A table in simulated time.
struct Table {
  FragmentTable table{4096};
  Instant now = 1h;
  std::uintptr_t packets = 0;

  FragmentFate first(std::uint64_t number, FragmentPiece at = piece(0),
                     const Elsewhere& elsewhere = {}) {
    return table.meet_first(fragment(number, at), kFlow, elsewhere, now);
  }
  FragmentFate later(std::uint64_t number, FragmentPiece at, const Elsewhere& elsewhere = {}) {
    return table.meet_later(fragment(number, at), token(packets++), elsewhere, now);
  }
  /// (packet, its fate) of all that are released by now.
  std::vector<std::pair<rte_mbuf*, FragmentFate>> released() {
    std::vector<std::pair<rte_mbuf*, FragmentFate>> all;
    while (const auto next = table.take_released()) all.emplace_back(next->packet, next->fate);
    return all;
  }
  void pass(Instant duration) {
    now += duration;
    table.expire(now, FragmentTable::kDatagrams);
  }
};

const FragmentFate kGoesOn = FragmentFate::goes_on(kFlow);
const FragmentFate kHeld = FragmentFate::held();
const FragmentFate kOverlap = FragmentFate::dropped(kV4.overlap);
const FragmentFate kNoRoom = FragmentFate::dropped(kV4.no_room);
const FragmentFate kNoFirst = FragmentFate::dropped(kV4.no_first);
const FragmentFate kTooMany = FragmentFate::dropped(kV4.too_many);

}  // namespace

TEST_CASE("fragments behind their first one go on with its flow") {
  Table t;
  CHECK(t.first(1) == kGoesOn);
  CHECK(t.later(1, piece(800)) == kGoesOn);
  CHECK(t.later(1, piece(1600, true)) == kGoesOn);
  CHECK(t.table.held() == 0);
}

TEST_CASE("fragments before their first one are held, and released in order when it comes") {
  Table t;
  CHECK(t.later(1, piece(1600, true)) == kHeld);
  CHECK(t.later(2, piece(800)) == kHeld);
  CHECK(t.later(1, piece(800)) == kHeld);
  CHECK(t.table.held() == 3);
  CHECK(t.first(1) == kGoesOn);
  CHECK(t.table.held() == 3);  // until they are taken
  const auto released = t.released();
  REQUIRE(released.size() == 2);
  CHECK(released[0] == std::pair{token(0), kGoesOn});
  CHECK(released[1] == std::pair{token(2), kGoesOn});
  CHECK(t.table.held() == 1);
}

TEST_CASE("datagrams that differ in anything do not meet") {
  Table t;
  CHECK(t.first(1) == kGoesOn);
  CHECK(t.later(2, piece(800)) == kHeld);
  CHECK(t.later(1 + 4096, piece(800)) == kHeld);  // the same chain of the index
  CHECK(t.later(1, piece(800)) == kGoesOn);
}

TEST_CASE("what waits for its first fragment is dropped after a second") {
  Table t;
  CHECK(t.later(1, piece(800)) == kHeld);
  t.pass(999ms);
  CHECK(t.released().empty());
  t.pass(1ms);
  CHECK(t.released() == std::vector{std::pair{token(0), kNoFirst}});
  CHECK_FALSE(t.table.busy());
}

TEST_CASE("a datagram is over after a second even where nothing has swept it yet") {
  Table t;
  CHECK(t.later(1, piece(800)) == kHeld);
  CHECK(t.first(2) == kGoesOn);
  t.now += 1s;
  CHECK(t.first(1) == kGoesOn);
  CHECK(t.released() == std::vector{std::pair{token(0), kNoFirst}});
  CHECK(t.later(2, piece(800)) == kHeld);
}

TEST_CASE("IPv6 counts its faults apart") {
  Table t;
  CHECK(t.table.meet_later(fragment(1, piece(800), Family::ipv6), token(0), {}, t.now) == kHeld);
  t.pass(1s);
  CHECK(t.released() == std::vector{std::pair{token(0), FragmentFate::dropped(kV6.no_first)}});
}

TEST_CASE("an overlapping fragment is dropped, and all else of its datagram") {
  const auto overlap = GENERATE(piece(0, false, 8), piece(8), piece(792, true, 16), piece(0, true),
                                piece(0, false, 1600), piece(792, false, 8));
  Table t;
  CHECK(t.first(1) == kGoesOn);
  CHECK((overlap.start == 0 ? t.first(1, overlap) : t.later(1, overlap)) == kOverlap);
  CHECK(t.later(1, piece(800)) == kOverlap);
  CHECK(t.first(1, piece(0)) == kOverlap);
  t.pass(1s);
  CHECK(t.first(1) == kGoesOn);
}

TEST_CASE("an overlap among held fragments drops them at once") {
  Table t;
  CHECK(t.later(1, piece(800)) == kHeld);
  CHECK(t.later(1, piece(1608, true)) == kHeld);
  CHECK(t.later(1, piece(1592, false, 16)) == kOverlap);
  CHECK(t.released() == std::vector{std::pair{token(0), kOverlap}, std::pair{token(1), kOverlap}});
  CHECK(t.first(1) == kOverlap);
}

TEST_CASE("a first fragment that overlaps held ones is dropped with them") {
  Table t;
  CHECK(t.later(1, piece(792)) == kHeld);
  CHECK(t.first(1) == kOverlap);
  CHECK(t.released() == std::vector{std::pair{token(0), kOverlap}});
}

TEST_CASE("bytes behind the last fragment's end are an overlap") {
  Table t;
  CHECK(t.first(1) == kGoesOn);
  CHECK(t.later(1, piece(1600, true)) == kGoesOn);
  CHECK(t.later(1, piece(2400)) == kOverlap);
  CHECK(t.later(1, piece(800)) == kOverlap);

  CHECK(t.first(2) == kGoesOn);
  CHECK(t.later(2, piece(2400)) == kGoesOn);
  CHECK(t.later(2, piece(1600, true)) == kOverlap);  // an end before what was seen
}

TEST_CASE("a fragment that is delivered twice is dropped once, and spoils nothing") {
  Table t;
  CHECK(t.later(1, piece(800)) == kHeld);
  CHECK(t.later(1, piece(800)) == kOverlap);
  CHECK(t.first(1) == kGoesOn);
  CHECK(t.released() == std::vector{std::pair{token(0), kGoesOn}});
  CHECK(t.first(1) == kOverlap);
  CHECK(t.later(1, piece(1600, true)) == kGoesOn);
  CHECK(t.later(1, piece(1600, true)) == kOverlap);  // complete by now
}

TEST_CASE("a datagram of 16 fragments passes, one of 17 is refused") {
  Table t;
  for (const std::uint64_t number : {1u, 2u}) {
    CHECK(t.first(number) == kGoesOn);
    for (std::uint16_t i = 1; i < 15; ++i)
      CHECK(t.later(number, piece(static_cast<std::uint16_t>(800 * i))) == kGoesOn);
  }
  CHECK(t.later(1, piece(12000, true)) == kGoesOn);
  CHECK(t.later(2, piece(12000)) == kGoesOn);
  CHECK(t.later(2, piece(12800, true)) == kTooMany);
  CHECK(t.later(2, piece(13600)) == kTooMany);
}

TEST_CASE("17 fragments without their first one are not held any longer") {
  Table t;
  for (std::uint16_t i = 1; i <= 16; ++i)
    CHECK(t.later(1, piece(static_cast<std::uint16_t>(800 * i))) == kHeld);
  CHECK(t.later(1, piece(13600)) == kTooMany);
  CHECK(t.released().size() == 16);
  CHECK(t.table.held() == 0);
}

TEST_CASE("the number of a complete datagram may be used again at once") {
  Table t;
  for (int i = 0; i < 3; ++i) {
    CHECK(t.first(1) == kGoesOn);
    CHECK(t.later(1, piece(800)) == kGoesOn);
    CHECK(t.later(1, piece(1600, true)) == kGoesOn);
  }
}

TEST_CASE("a datagram that is complete when its first fragment comes is known to be") {
  Table t;
  CHECK(t.later(1, piece(800, true)) == kHeld);
  CHECK(t.first(1) == kGoesOn);
  CHECK(t.later(1, piece(808, false, 8)) == kOverlap);
  CHECK(t.first(1) == kGoesOn);  // used again
}

TEST_CASE("the others of a refused first fragment share its fate at once") {
  Table t;
  CHECK(t.later(1, piece(800)) == kHeld);
  t.table.refuse(fragment(1, piece(0)), DropReason::unknown_protocol, t.now);
  const auto refused = FragmentFate::dropped(DropReason::unknown_protocol);
  CHECK(t.released() == std::vector{std::pair{token(0), refused}});
  CHECK(t.later(1, piece(1600)) == refused);
  t.table.refuse(fragment(2, piece(0)), DropReason::unknown_protocol, t.now);
  CHECK(t.later(2, piece(800)) == refused);
}

TEST_CASE("in a table full of waiting datagrams another one finds no room, but a first one does") {
  Table t;
  for (std::uint64_t i = 0; i < FragmentTable::kDatagrams; ++i)
    REQUIRE(t.later(i, piece(800)) == kHeld);
  CHECK(t.later(5000, piece(800)) == kNoRoom);
  CHECK(t.first(6000) == kGoesOn);
  CHECK(t.released() == std::vector{std::pair{token(0), kNoRoom}});  // the oldest
  CHECK(t.later(6000, piece(800)) == kGoesOn);
  CHECK(t.later(1, piece(1600)) == kHeld);  // the others are still there
  t.pass(1s);
  CHECK(t.later(5000, piece(800)) == kHeld);
}

TEST_CASE("first fragments take the places of the oldest ones") {
  Table t;
  for (std::uint64_t i = 0; i < FragmentTable::kDatagrams; ++i) {
    REQUIRE(t.first(i) == kGoesOn);
    t.now += 1us;
  }
  CHECK(t.later(5000, piece(800)) == kNoRoom);  // never the place of a known one
  CHECK(t.first(6000) == kGoesOn);
  CHECK(t.later(1, piece(800)) == kGoesOn);
  CHECK(t.later(0, piece(800)) == kNoRoom);
}

TEST_CASE("the places of complete datagrams are free for all, the oldest first") {
  Table t;
  for (std::uint64_t i = 0; i < FragmentTable::kDatagrams; ++i) {
    REQUIRE(t.first(i) == kGoesOn);
    if (i < 10) REQUIRE(t.later(i, piece(800, true)) == kGoesOn);
  }
  CHECK(t.later(5000, piece(800)) == kHeld);
  CHECK(t.later(1, piece(800, true)) == kOverlap);  // complete, and still remembered
  CHECK(t.first(6000) == kGoesOn);
  CHECK(t.later(10, piece(800)) == kGoesOn);
}

TEST_CASE("no more packets are held than the limit says, and none is lost by it") {
  FragmentTable table{3};
  const Instant now = 1h;
  for (std::uint16_t i = 0; i < 3; ++i)
    CHECK(table.meet_later(fragment(i, piece(800)), token(i), {}, now) == kHeld);
  CHECK(table.meet_later(fragment(0, piece(1600)), token(3), {}, now) == kNoRoom);
  CHECK(table.meet_later(fragment(9, piece(1600)), token(4), {}, now) == kNoRoom);
  CHECK(table.held() == 3);
  CHECK(table.meet_first(fragment(1, piece(0)), kFlow, {}, now) == kGoesOn);
  // Released, and still the table's: they count.
  CHECK(table.meet_later(fragment(0, piece(1600)), token(5), {}, now) == kNoRoom);
  CHECK(table.take_released()->packet == token(1));
  CHECK(table.meet_later(fragment(0, piece(1600)), token(6), {}, now) == kHeld);
}

TEST_CASE("a table that may hold nothing forwards what comes in order") {
  FragmentTable table{0};
  CHECK(table.meet_later(fragment(1, piece(800)), token(0), {}, 1h) == kNoRoom);
  CHECK(table.meet_first(fragment(1, piece(0)), kFlow, {}, 1h) == kGoesOn);
  CHECK(table.meet_later(fragment(1, piece(800)), token(0), {}, 1h) == kGoesOn);
}

TEST_CASE("expiring is a bounded amount of work") {
  Table t;
  for (std::uint64_t i = 0; i < 100; ++i) REQUIRE(t.later(i, piece(800)) == kHeld);
  t.now += 2s;
  t.table.expire(t.now, 16);
  CHECK(t.released().size() == 16);
  t.table.expire(t.now, 16);
  CHECK(t.released().size() == 16);
}

TEST_CASE("each datagram that waits is due once a millisecond, in turn") {
  Table t;
  for (std::uint64_t i = 0; i < 3; ++i) REQUIRE(t.later(i, piece(800)) == kHeld);
  CHECK_FALSE(t.table.due(t.now));
  for (int round = 0; round < 2; ++round) {
    t.now += 1ms;
    for (std::uint64_t i = 0; i < 3; ++i) {
      REQUIRE(t.table.due(t.now) == datagram(i));
      t.table.heard({}, t.now);
    }
    CHECK_FALSE(t.table.due(t.now));
  }
  t.now += 1ms;
  t.table.heard({.state = DatagramState::known, .flow = kFlow}, t.now);
  CHECK(t.released() == std::vector{std::pair{token(0), kGoesOn}});
  t.table.heard({.state = DatagramState::refused, .reason = DropReason::unknown_protocol}, t.now);
  CHECK(t.released() ==
        std::vector{std::pair{token(1), FragmentFate::dropped(DropReason::unknown_protocol)}});
  CHECK(t.table.due(t.now) == datagram(2));
}

TEST_CASE("what another worker knows is taken over") {
  Table t;
  const Elsewhere known{.state = DatagramState::known, .flow = kFlow};
  CHECK(t.later(1, piece(800), known) == kGoesOn);
  CHECK(t.later(1, piece(1600)) == kGoesOn);  // asked once
  CHECK(t.later(1, piece(1608)) == kOverlap);

  CHECK(t.later(2, piece(800)) == kHeld);
  CHECK(t.later(2, piece(1600), known) == kGoesOn);
  CHECK(t.released() == std::vector{std::pair{token(3), kGoesOn}});

  CHECK(t.later(3, piece(800), {.clash = Clash::overlap}) == kOverlap);
  CHECK(t.first(3) == kOverlap);
  CHECK(t.first(4, piece(0), {.clash = Clash::duplicate}) == kOverlap);
  CHECK(t.first(4) == kGoesOn);
  CHECK(t.first(5, piece(0), {.state = DatagramState::refused, .reason = kV4.too_many}) ==
        kTooMany);
}

TEST_CASE("without a place what another worker knows still counts") {
  Table t;
  for (std::uint64_t i = 0; i < FragmentTable::kDatagrams; ++i)
    REQUIRE(t.later(i, piece(800)) == kHeld);
  CHECK(t.later(5000, piece(800), {.state = DatagramState::known, .flow = kFlow}) == kGoesOn);
  CHECK(t.later(5000, piece(800), {.state = DatagramState::refused, .reason = kV4.too_many}) ==
        kTooMany);
  CHECK(t.later(5000, piece(800),
                {.state = DatagramState::known, .flow = kFlow, .clash = Clash::overlap}) ==
        kOverlap);
}

TEST_CASE("another worker sees what is known, waits, is refused or complete, while it lives") {
  Table t;
  CHECK_FALSE(t.table.peek(datagram(1), t.now));
  CHECK(t.later(1, piece(800)) == kHeld);
  CHECK(t.table.peek(datagram(1), t.now)->state == DatagramState::waiting);
  CHECK(t.first(1) == kGoesOn);
  const auto known = t.table.peek(datagram(1), t.now);
  REQUIRE(known);
  CHECK(known->state == DatagramState::known);
  CHECK(known->flow == kFlow);
  REQUIRE(known->pieces().size() == 2);
  CHECK(known->pieces()[0] == piece(800));
  CHECK(known->pieces()[1] == piece(0));
  CHECK(t.later(1, piece(1600, true)) == kGoesOn);
  CHECK(t.table.peek(datagram(1), t.now)->state == DatagramState::complete);
  t.now += 1s;
  CHECK_FALSE(t.table.peek(datagram(1), t.now));
  t.table.refuse(fragment(2, piece(0), Family::ipv6), DropReason::unknown_protocol, t.now);
  const auto refused = t.table.peek(datagram(2), t.now);
  REQUIRE(refused);
  CHECK(refused->state == DatagramState::refused);
  CHECK(refused->reason == DropReason::unknown_protocol);
  CHECK(refused->family == Family::ipv6);
}

}  // namespace holdfast

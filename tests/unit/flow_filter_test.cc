// SPDX-License-Identifier: Apache-2.0
// Which flows a filter takes, how they are counted, and where a page of them ends.
#include "lib/model/flow_filter.h"

#include "lib/model/flow_cursor.h"
#include "tests/catch.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using State = FlowRow::State;

constexpr ServiceNumber kWeb{0};
constexpr ServiceNumber kDns{1};
constexpr BackendNumber kB1{0};
constexpr BackendNumber kB2{1};
constexpr BackendNumber kB9{9};

FlowRow row(State state, ServiceNumber service = kWeb, BackendNumber backend = kB1,
            std::chrono::milliseconds idle = 0ms) {
  return {.age = 1h, .idle = idle, .service = service, .backend = backend, .state = state};
}

TEST_CASE("a filter without conditions takes every flow, and each condition is needed") {
  const FlowRow flow{
      .age = 100s, .idle = 10s, .service = kDns, .backend = kB2, .state = State::proven};
  CHECK(FlowFilter{}.matches(flow));
  CHECK(FlowFilter{.service = kDns}.matches(flow));
  CHECK_FALSE(FlowFilter{.service = kWeb}.matches(flow));
  CHECK(FlowFilter{.backends = {kB1, kB2, kB9}}.matches(flow));
  CHECK_FALSE(FlowFilter{.backends = {kB1, kB9}}.matches(flow));
  CHECK(FlowFilter{.service = kDns, .backends = {kB2}, .idle_over = 9s}.matches(flow));
  CHECK_FALSE(FlowFilter{.service = kDns, .backends = {kB2}, .idle_over = 11s}.matches(flow));
}

TEST_CASE("over a time is longer than it") {
  const FlowRow flow{.age = 100s, .idle = 10s};
  CHECK(FlowFilter{.idle_over = 9750ms}.matches(flow));
  CHECK_FALSE(FlowFilter{.idle_over = 10s}.matches(flow));
  CHECK(FlowFilter{.age_over = 99s}.matches(flow));
  CHECK_FALSE(FlowFilter{.age_over = 100s}.matches(flow));
}

TEST_CASE("a state may be named as it is shown, and active means established or proven") {
  for (const auto state : {State::embryonic, State::established, State::proven, State::closing}) {
    for (const auto* const word : {"embryonic", "established", "proven", "closing", "active"}) {
      const FlowFilter filter{.states = parse_flow_states(word)};
      REQUIRE(filter.states);
      const bool same = name_of(state) == word;
      const bool active = state == State::established || state == State::proven;
      CHECK(filter.matches(row(state)) == (same || (active && std::string_view(word) == "active")));
    }
  }
  CHECK_FALSE(parse_flow_states("open"));
  CHECK_FALSE(parse_flow_states(""));
  CHECK_FALSE(parse_flow_states("Proven"));
}

TEST_CASE("a census counts by service and backend, and silent active flows apart") {
  FlowCensus census(10s);
  census.add(row(State::established));
  census.add(row(State::proven, kWeb, kB1, 10s));
  census.add(row(State::proven, kWeb, kB1, 10250ms));
  census.add(row(State::embryonic, kWeb, kB1, 15s));
  census.add(row(State::closing, kWeb, kB2, 40s));
  census.add(row(State::established, kDns, kB9, 1h));
  const auto groups = census.largest(10);
  REQUIRE(groups.size() == 3);
  CHECK(groups[0].service == kWeb);
  CHECK(groups[0].backend == kB1);
  CHECK(groups[0].flows == FlowTally{.active = 2, .idle = 1, .embryonic = 1});
  CHECK(groups[1].backend == kB2);
  CHECK(groups[1].flows == FlowTally{.closing = 1});
  CHECK(groups[2].service == kDns);
  CHECK(groups[2].backend == kB9);
  CHECK(groups[2].flows == FlowTally{.idle = 1});
  CHECK(census.total() == FlowTally{.active = 2, .idle = 2, .embryonic = 1, .closing = 1});
}

TEST_CASE("without a time for it no flow counts as idle") {
  FlowCensus census(std::nullopt);
  census.add(row(State::proven, kWeb, kB1, 24h));
  CHECK(census.total() == FlowTally{.active = 1});
}

TEST_CASE("of too many groups those with the most flows are shown, in their order") {
  FlowCensus census(std::nullopt);
  for (std::uint16_t backend = 0; backend < 20; ++backend)
    for (int i = 0; i <= (backend * 7) % 20; ++i)
      census.add(row(State::proven, kWeb, BackendNumber{backend}));
  CHECK(census.groups() == 20);
  const auto largest = census.largest(3);  // (backend * 7) % 20 is 17, 18, 19 for 11, 14, 17
  REQUIRE(largest.size() == 3);
  CHECK(largest[0].backend == BackendNumber{11});
  CHECK(largest[1].backend == BackendNumber{14});
  CHECK(largest[2].backend == BackendNumber{17});
  CHECK(largest[2].flows.active == 20);
  CHECK(census.total().active == 210);
}

TEST_CASE("a cursor leads back to its position, with its own list only") {
  for (const FlowPosition position :
       {FlowPosition{}, FlowPosition{.worker = 63, .place = 9'999'999},
        FlowPosition{.worker = 0xffff, .place = (std::uint64_t{1} << 48) - 1}}) {
    const auto cursor = write_flow_cursor(position, "a list");
    CHECK(read_flow_cursor(cursor, "a list") == position);
    CHECK_FALSE(read_flow_cursor(cursor, "another list"));
    CHECK_FALSE(read_flow_cursor(cursor, ""));
  }
}

TEST_CASE("a cursor that was changed in any digit, cut, or made up is none") {
  const auto cursor = write_flow_cursor({.worker = 2, .place = 12345}, "a list");
  for (std::size_t i = 0; i < cursor.size(); ++i) {
    auto changed = cursor;
    changed[i] = changed[i] == '0' ? '1' : '0';
    CHECK_FALSE(read_flow_cursor(changed, "a list"));
    CHECK_FALSE(read_flow_cursor(cursor.substr(0, i), "a list"));
  }
  CHECK_FALSE(read_flow_cursor(cursor + "0", "a list"));
  CHECK_FALSE(read_flow_cursor("000000000000000000000000", "a list"));
  CHECK_FALSE(read_flow_cursor("-00000000000000000000000", "a list"));
}

}  // namespace
}  // namespace holdfast

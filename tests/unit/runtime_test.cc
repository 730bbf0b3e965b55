// SPDX-License-Identifier: Apache-2.0
// What a new configuration keeps, and what it forgets.
#include <algorithm>

#include "ctrl/reconcile/reconcile.h"
#include "tests/catch.h"
#include "tests/unit/plane.h"

using namespace holdfast;
using namespace holdfast::plane;

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

TEST_CASE("numbers of removed backends and services come free when they are swept") {
  Plane plane;
  plane.config.services.push_back(service("http", "web", "192.0.2.1", 80));
  plane.follow();
  plane.config.services.pop_back();
  plane.config.pools[0].backends.pop_back();
  plane.follow();
  CHECK(plane.state.backend_numbers.waiting() == 1);
  CHECK(plane.state.service_numbers.waiting() == 1);
  const std::vector<std::uint64_t> published{0};
  const std::vector<std::uint64_t> swept{BackendNumbers::kSweeps};
  plane.state.backend_numbers.released(published);
  plane.state.service_numbers.released(published);
  CHECK(plane.state.backend_numbers.reclaim(swept) == std::vector{BackendNumber{2}});
  CHECK(plane.state.service_numbers.reclaim(swept) == std::vector{ServiceNumber{1}});
}

TEST_CASE("new rise and fall hold for the results that come after them") {
  Plane plane;
  plane.all_up();
  plane.config.checks[0].fall = 4;
  plane.follow();
  plane.down(kA);  // two failures
  CHECK(plane.member(kA).health.health() == Health::up);
  plane.down(kA);
  CHECK(plane.member(kA).health.health() == Health::down);
}

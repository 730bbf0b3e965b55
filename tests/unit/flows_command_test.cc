// SPDX-License-Identifier: Apache-2.0
// What `holdfast flows` makes of words, rows and counts: names, refusals, JSON and text.
#include "ctrl/command/flows.h"

#include "tests/catch.h"
#include "tests/unit/plane.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using State = FlowRow::State;

/// Pools "web" with a, b and c, and "dns" with a under another name; services "https" and "names".
class World {
 public:
  World() {
    plane_.config.pools.push_back(plane::pool("dns", {plane::backend("resolver", plane::kA)}));
    plane_.config.services.push_back(plane::service("names", "dns", "192.0.2.2"));
    plane_.follow();
    plane_.run();
  }
  [[nodiscard]] FlowWorld now() const {
    return {plane_.config.services, plane_.state.service_numbers, plane_.last.pools};
  }
  [[nodiscard]] ServiceNumber service(const std::string& name) const {
    return plane_.state.service_numbers.find(name).value();
  }
  [[nodiscard]] BackendNumber backend(const std::string& pool, const IpAddress& address) const {
    return plane_.state.backend_numbers.find({pool, address}).value();
  }

 private:
  plane::Plane plane_;
};

std::string refusal(const Json& arguments) {
  const auto filter = read_filter(World().now(), arguments);
  return filter ? "" : filter.error().code + ": " + filter.error().message;
}

TEST_CASE("flows: names become numbers, and a backend without a pool means all its pools") {
  const World world;
  const auto filter = [&](const Json& arguments) {
    return read_filter(world.now(), arguments).value();
  };
  CHECK_FALSE(filter(Json::object()).service);
  CHECK(filter(Json::object()).backends.empty());
  CHECK(filter({{"service", "names"}}).service == world.service("names"));
  CHECK(filter({{"backend", "web/b"}}).backends == std::vector{world.backend("web", plane::kB)});
  auto both = std::vector{world.backend("web", plane::kA), world.backend("dns", plane::kA)};
  std::sort(both.begin(), both.end());
  CHECK(filter({{"backend", plane::kA.text()}}).backends == both);
  CHECK(filter({{"state", "active"}}).states == FlowStates::active);
  CHECK(filter({{"idle-over", "15m"}}).idle_over == 15min);
  CHECK(filter({{"age-over", "2h"}}).age_over == 2h);
}

TEST_CASE("flows: what is not there is refused with what is") {
  CHECK(refusal({{"service", "htps"}}) == "not_found: no service \"htps\": there is https, names");
  CHECK(refusal({{"backend", "dns/a"}}) ==
        "not_found: no backend \"a\" in pool dns: there is resolver");
  CHECK(refusal({{"backend", "d"}}) ==
        "not_found: no backend \"d\" in any pool: there is a, b, c, resolver");
  CHECK(refusal({{"backend", "wob/a"}}) == "not_found: no pool \"wob\": there is dns, web");
  CHECK(refusal({{"state", "open"}}) ==
        "usage: --state is embryonic, established, proven, closing or active");
}

TEST_CASE("flows list shows names, times and the tag, and whether the flow is older than its age") {
  const World world;
  const FlowNames names(world.now());
  const std::vector<FlowRow> rows{{.tag = 0x12345,
                                   .age = 90'250ms,
                                   .idle = 250ms,
                                   .worker = 3,
                                   .service = world.service("https"),
                                   .backend = world.backend("web", plane::kC),
                                   .state = State::proven,
                                   .adopted = true},
                                  {.tag = (std::uint64_t{1} << 42) - 1,
                                   .age = 1h,
                                   .idle = 0s,
                                   .service = ServiceNumber{77},
                                   .backend = BackendNumber{99},
                                   .state = State::closing}};
  const auto json = page_json(rows, "00ff", names);
  CHECK(json["flows"].at(0) == Json{{"worker", 3},
                                    {"service", "https"},
                                    {"backend", "web/c"},
                                    {"state", "proven"},
                                    {"age_seconds", 90.25},
                                    {"idle_seconds", 0.25},
                                    {"adopted", true},
                                    {"tag", "00000012345"}});
  CHECK(json["flows"].at(1)["service"] == "a removed service");
  CHECK(json["flows"].at(1)["backend"] == "a removed backend");
  CHECK(json["flows"].at(1)["tag"] == "3ffffffffff");
  CHECK(json["cursor"] == "00ff");
  CHECK(flows_list_command().render(json) ==
        "WORKER  SERVICE            BACKEND            STATE             AGE   IDLE  TAG\n"
        "     3  https              web/c              proven   > 1 min 30 s  0.2 s  00000012345\n"
        "     0  a removed service  a removed backend  closing     1 h 0 min  0.0 s  3ffffffffff\n"
        "the next page: the same command with --cursor 00ff\n");
  const auto last = page_json({}, "", names);
  CHECK(last["cursor"].is_null());
  CHECK(flows_list_command().render(last) == "there is no such flow\n");
}

TEST_CASE("flows count shows each service and backend, the sum, and idle flows only if asked") {
  const World world;
  const FlowNames names(world.now());
  const auto add_some = [&](FlowCensus& census) {
    for (int i = 0; i < 12; ++i)
      census.add({.idle = std::chrono::seconds(i),
                  .service = world.service("https"),
                  .backend = world.backend("web", plane::kB),
                  .state = i % 2 == 0 ? State::proven : State::established});
    census.add({.service = world.service("names"),
                .backend = world.backend("dns", plane::kA),
                .state = State::embryonic});
  };
  FlowCensus plain(std::nullopt);
  add_some(plain);
  const auto json = census_json(plain, std::nullopt, names);
  CHECK(json["groups"].at(0) == Json{{"service", "https"},
                                     {"backend", "web/b"},
                                     {"active", 12},
                                     {"embryonic", 0},
                                     {"closing", 0}});
  CHECK(json["total"] == Json{{"active", 12}, {"embryonic", 1}, {"closing", 0}});
  CHECK(json["idle_over_seconds"].is_null());
  CHECK(json["groups_left_out"] == 0);
  CHECK(flows_count_command().render(json) ==
        "SERVICE  BACKEND       ACTIVE  EMBRYONIC  CLOSING\n"
        "https    web/b             12          0        0\n"
        "names    dns/resolver       0          1        0\n"
        "all                        12          1        0\n");

  FlowCensus apart(7s);
  add_some(apart);
  CHECK(flows_count_command().render(census_json(apart, 7s, names)) ==
        "SERVICE  BACKEND       ACTIVE  IDLE  EMBRYONIC  CLOSING\n"
        "https    web/b              8     4          0        0\n"
        "names    dns/resolver       0     0          1        0\n"
        "all                         8     4          1        0\n"
        "IDLE: established or proven, but silent for more than 7.0 s; ACTIVE has the others\n");
}

TEST_CASE("flows count shows at most 1000 services and backends, and says how many it leaves out") {
  FlowCensus census(std::nullopt);
  for (std::uint16_t backend = 0; backend < 1500; ++backend)
    census.add({.service = ServiceNumber{0}, .backend = BackendNumber{backend}});
  const auto json = census_json(census, std::nullopt, FlowNames(World().now()));
  CHECK(json["groups"].size() == 1000);
  CHECK(json["groups_left_out"] == 500);
  CHECK(json["total"]["embryonic"] == 1500);
  CHECK(flows_count_command().render(json).find(
            "500 services and backends with fewer flows are left out") != std::string::npos);
}

}  // namespace
}  // namespace holdfast

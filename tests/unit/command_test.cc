// SPDX-License-Identifier: Apache-2.0
// The pure parts of the command families: names, arguments, selection, rates, the event log.
#include "ctrl/command/command.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "ctrl/check/checker.h"
#include "ctrl/drop_rates.h"
#include "ctrl/reconcile/select.h"
#include "ctrl/state_changes.h"
#include "ctrl/worker_pulse.h"
#include "lib/protocol/json.h"
#include "tests/catch.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

IpAddress address(std::string_view text) { return *IpAddress::parse(text); }

BackendReport backend(std::string name, std::string_view text,
                      BackendState state = BackendState::eligible, std::string reason = "up") {
  BackendReport report;
  report.name = std::move(name);
  report.address = address(text);
  report.state = state;
  report.reason = std::move(reason);
  return report;
}

PoolReport pool(std::string name, std::vector<BackendReport> backends,
                PoolPlacement placement = PoolPlacement::eligible) {
  PoolReport report;
  report.name = std::move(name);
  report.backends = std::move(backends);
  report.placement = placement;
  return report;
}

const std::vector<PoolReport> kPools{
    pool("web", {backend("b1", "192.0.2.1"), backend("b2", "2001:db8::2")}),
    pool("dns", {backend("b1", "192.0.2.1"), backend("192.0.2.9", "192.0.2.9")})};

std::vector<std::string> labels(std::string_view name) {
  std::vector<std::string> result;
  const auto selected = select_backends(kPools, name);
  if (!selected) return {selected.error().message};
  for (const auto& one : *selected) result.push_back(one.label());
  return result;
}

using Labels = std::vector<std::string>;

TEST_CASE("every command has a name of its own, a summary, an example, and one way to run") {
  std::set<std::string_view> names;
  for (const auto& command : all_commands()) {
    CAPTURE(command.name);
    CHECK(names.insert(command.name).second);
    CHECK_FALSE(command.summary.empty());
    CHECK(command.example.substr(0, 9 + command.name.size()) ==
          "holdfast " + std::string(command.name));
    CHECK((command.run == nullptr) != (command.run_here == nullptr));
    CHECK(command.render != nullptr);
    CHECK(find_command(command.name) == &command);
  }
  CHECK(find_command("nope") == nullptr);
}

TEST_CASE("arguments must be known, of their kind, and there when they are positional") {
  const Command& drain = *find_command("backend drain");
  const auto message = [&](const Json& arguments) {
    const auto fault = check_arguments(drain, arguments);
    return fault ? fault->message : "";
  };
  CHECK(message({{"backend", "b1"}}).empty());
  CHECK(message({{"backend", "b1"}, {"timeout", "15m"}, {"no-wait", true}}).empty());
  CHECK(message(Json::object()).find("needs BACKEND") == 0);
  CHECK(message({{"backend", ""}}).starts_with("BACKEND is an empty name (POOL/BACKEND"));
  CHECK(message({{"backend", 1}}).find("must be a text") != std::string::npos);
  CHECK(message({{"backend", "b1"}, {"timeout", "15"}}).find("duration") != std::string::npos);
  CHECK(message({{"backend", "b1"}, {"no-wait", "yes"}}).find("true or false") !=
        std::string::npos);
  CHECK(message({{"backend", "b1"}, {"timeuot", "1s"}}).find("timeuot") != std::string::npos);
}

TEST_CASE("an empty option is called empty, not a name") {
  const auto fault = check_arguments(*find_command("flows list"), {{"limit", ""}});
  REQUIRE(fault);
  CHECK(fault->message.starts_with("--limit is empty (So many"));
}

TEST_CASE("a backend alone means all pools that have it, by name or address") {
  CHECK(labels("b1") == Labels{"web/b1", "dns/b1"});
  CHECK(labels("192.0.2.1") == Labels{"web/b1", "dns/b1"});
  CHECK(labels("192.0.2.9") == Labels{"dns/192.0.2.9"});
  CHECK(labels("web/b1") == Labels{"web/b1"});
  CHECK(labels("web/2001:db8:0::2") == Labels{"web/b2"});  // however it is written
}

TEST_CASE("a name that is not there is answered with those that are") {
  CHECK(labels("b7") == Labels{"no backend \"b7\" in any pool: there is 192.0.2.9, b1, b2"});
  CHECK(labels("web/b7") == Labels{"no backend \"b7\" in pool web: there is b1, b2"});
  CHECK(labels("web/") == Labels{"no backend \"\" in pool web: there is b1, b2"});
  CHECK(labels("api/b1") == Labels{"no pool \"api\": there is dns, web"});
  CHECK(select_pool(kPools, "web").value() == &kPools[0]);
  CHECK(select_pool({}, "web").error().message == "no pool \"web\": there is none");
  std::vector<ServiceConfig> services(2);
  services[0].name = "https";
  services[1].name = "dns";
  CHECK(select_service(services, "dns").value() == &services[1]);
  CHECK(select_service(services, "http").error().message ==
        "no service \"http\": there is dns, https");
  std::vector<BackendReport> many;
  for (int i = 100; i < 150; ++i) many.push_back(backend("b" + std::to_string(i), "192.0.2.1"));
  const std::vector<PoolReport> big{pool("big", many)};
  const auto error = select_backends(big, "x").error().message;
  CHECK(error.find("b119 and 30 more") != std::string::npos);
}

TEST_CASE("a name from outside comes back escaped and cut") {
  CHECK(labels("b\x1b[2J\n") ==
        Labels{"no backend \"b\\x1b[2J\\x0a\" in any pool: there is 192.0.2.9, b1, b2"});
  CHECK(labels(std::string(70'000, 'x'))[0].size() < 200);
  CHECK(labels("web/" + std::string(70'000, 'x'))[0].size() < 200);
  CHECK(labels(std::string(70'000, 'x') + "/b1")[0].size() < 200);
  const auto key = std::string(70'000, 'k') + "\x07";
  const auto fault = check_arguments(*find_command("status"), {{key, 1}});
  REQUIRE(fault);
  CHECK(fault->message == "has no argument \"" + std::string(64, 'k') + "...\"");
}

TEST_CASE("rates are averages over the last ten seconds") {
  DropRates rates;
  DropRates::Totals totals{};
  const auto reason = DropReason::unknown_port;
  auto& count = totals[static_cast<std::size_t>(reason)];
  CHECK(rates.rate(reason) == 0);
  rates.add(1s, totals);
  CHECK(rates.rate(reason) == 0);
  count = 50;
  rates.add(2s, totals);
  CHECK(std::abs(rates.rate(reason) - 50) < 0.001);
  for (int second = 3; second <= 60; ++second) {
    count += 10;
    rates.add(std::chrono::seconds(second), totals);
  }
  CHECK(std::abs(rates.rate(reason) - 10) < 0.001);
  CHECK(std::abs(rates.covered().count() - 10) < 0.001);
  CHECK(rates.rate(DropReason::too_big) == 0);
  rates.add(60s, totals);  // not later: ignored
  CHECK(std::abs(rates.covered().count() - 10) < 0.001);
}

TEST_CASE("a worker whose heartbeat stands still is told once, and again when it moves") {
  WorkerPulse pulse;
  std::vector<WorkerStats> workers(2);
  workers[1].worker = 1;
  for (int second = 0; second <= 20; ++second) {
    ++workers[0].heartbeat;
    if (second < 5 || second > 15) ++workers[1].heartbeat;
    const auto changes = pulse.add(std::chrono::seconds(second), workers);
    CAPTURE(second);
    if (second == 8 || second == 16) {
      REQUIRE(changes.size() == 1);
      CHECK(changes[0].worker == 1);
      CHECK(changes[0].alive == (second == 16));
    } else {
      CHECK(changes.empty());
    }
    CHECK(pulse.alive() == (second >= 8 && second < 16 ? 1U : 2U));
  }
  CHECK(pulse.workers() == 2);
}

TEST_CASE("there is one event for each change, with the reason") {
  const auto texts = [](const auto& before, const auto& after) {
    Labels result;
    for (const auto& change : state_changes(before, after)) {
      result.push_back(fmt::format("{}{} {}: {}", change.severity == Severity::info ? "" : "! ",
                                   name_of(change.kind), change.subject, change.text));
    }
    return result;
  };
  CHECK(texts(kPools, kPools).empty());
  auto after = kPools;
  after[0].backends[0].state = BackendState::down;
  after[0].backends[0].reason = "check failed 2 times: connection refused";
  CHECK(texts(kPools, after) ==
        Labels{"! backend web/b1 (192.0.2.1): eligible -> down: check failed 2 times: connection "
               "refused"});
  after[0].placement = PoolPlacement::none;
  CHECK(texts(kPools, after).at(1) ==
        "! pool web: no backend may take new flows, they are dropped");
  CHECK(texts(after, kPools).at(0) == "backend web/b1 (192.0.2.1): down -> eligible: up");
  CHECK(texts(std::vector<PoolReport>{}, kPools).at(4) == "backend dns/192.0.2.9: eligible: up");

  after = kPools;
  after[0].backends[0].state = BackendState::draining;
  after[0].backends[0].keeps_tcp = true;
  auto later = after;
  later[0].backends[0].keeps_tcp = false;
  later[0].backends[0].reason = "the deadline has passed";
  CHECK(texts(after, later) ==
        Labels{"! backend web/b1 (192.0.2.1): flows that are left move now, each at its next "
               "packet: the deadline has passed"});

  after[0].backends[0].state = later[0].backends[0].state = BackendState::unchecked;
  after[0].backends[0].awaits_check = later[0].backends[0].keeps_tcp = true;
  later[0].backends[0].reason = "not checked yet";
  CHECK(texts(after, later) ==
        Labels{"! backend web/b1 (192.0.2.1): still unchecked: not checked yet"});
  CHECK(texts(later, later).empty());
}

TEST_CASE("a way that is too narrow for the longest packets is one event when it is seen") {
  auto narrow = kPools;
  narrow[0].backends[0].warning = "the MTU is small";
  const auto texts = [](const auto& before, const auto& after) {
    Labels result;
    for (const auto& change : state_changes(before, after))
      result.push_back(fmt::format("{} {}", name_of(change.severity), change.text));
    return result;
  };
  CHECK(texts(kPools, narrow) == Labels{"warning the MTU is small"});
  CHECK(texts(narrow, narrow).empty());
  CHECK(texts(narrow, kPools) == Labels{"info the longest packets of clients fit again"});
}

TEST_CASE("a path MTU that a router told is one event when it is learned and one when it is over") {
  auto learned = kPools;
  learned[0].backends[0].path_mtu = PathMtu{1400, *IpAddress::parse("198.51.100.1")};
  learned[0].backends[0].warning = "too narrow";  // is the same news in other words
  const auto texts = [](const auto& before, const auto& after) {
    Labels result;
    for (const auto& change : state_changes(before, after))
      result.push_back(
          fmt::format("{} {} {}", name_of(change.severity), change.subject, change.text));
    return result;
  };
  CHECK(texts(kPools, learned) ==
        Labels{"info web/b1 (192.0.2.1) path MTU to backend 192.0.2.1 is 1400, learned from "
               "198.51.100.1, for 10 min"});
  CHECK(texts(learned, learned).empty());
  CHECK(texts(learned, kPools) ==
        Labels{"info web/b1 (192.0.2.1) path MTU to backend 192.0.2.1: what a router said is over, "
               "larger packets are tried again"});
  auto lower = learned;
  lower[0].backends[0].path_mtu->mtu = 1300;
  CHECK(texts(learned, lower).size() == 1);
}

TEST_CASE("pool show and status tell the path MTUs that were learned") {
  const auto show = [](const Json& path_mtu) {
    return find_command("pool show")
        ->render({{"pool", "web"},
                  {"backends", Json::array({Json{{"name", "b1"}, {"path_mtu", path_mtu}}})}});
  };
  const Json said{{"mtu", 1400u}, {"learned_from", "198.51.100.1"}, {"expires_in_seconds", 125.0}};
  CHECK(show(said).ends_with(
      "\n\npath MTU to b1: 1400, learned from 198.51.100.1, for another 2 min 5 s\n"));
  CHECK(show(nullptr).find("path MTU") == std::string::npos);

  const auto status = [](std::uint64_t learned) {
    return find_command("status")->render({{"path_mtus_learned", learned}});
  };
  CHECK(
      status(2).find("path MTU learned from routers for 2 backends: `holdfast pool show POOL` has "
                     "it\n") != std::string::npos);
  CHECK(status(0).find("path MTU") == std::string::npos);
}

TEST_CASE("standing warnings are about ways, not about checks or drains") {
  CHECK(standing_warnings(kPools).empty());
  auto pools = kPools;
  auto& backend = pools[0].backends[0];
  backend.reason = "REASON";
  for (const auto state : {BackendState::down, BackendState::draining, BackendState::unchecked}) {
    backend.state = state;
    CHECK(standing_warnings(pools).empty());
  }
  for (const auto state : {BackendState::neigh_unresolved, BackendState::next_hop_lost,
                           BackendState::path_too_small}) {
    backend.state = state;
    CHECK(standing_warnings(pools) == Labels{"web/b1 (192.0.2.1): REASON"});
  }
  backend.warning = "WARNING";  // the state says more
  CHECK(standing_warnings(pools) == Labels{"web/b1 (192.0.2.1): REASON"});
  backend.state = BackendState::eligible;
  CHECK(standing_warnings(pools) == Labels{"web/b1 (192.0.2.1): WARNING"});
}

TEST_CASE("a backend is compared with itself, wherever it stands among thousands") {
  std::vector<BackendReport> backends;
  for (unsigned i = 0; i < 20'000; ++i)
    backends.push_back(backend(fmt::format("b{}", i), fmt::format("10.0.{}.{}", i >> 8, i & 255)));
  const std::vector<PoolReport> before{pool("big", backends)};
  std::swap(backends[3], backends[17'000]);
  backends[17'000].state = BackendState::down;  // b3
  backends.erase(backends.begin() + 5);
  backends.push_back(backend("new", "192.0.2.1"));
  const auto changes = state_changes(before, std::vector{pool("big", backends)});
  REQUIRE(changes.size() == 2);
  CHECK(changes[0].subject == "big/b3 (10.0.0.3)");
  CHECK(changes[0].text.starts_with("eligible -> down: "));
  CHECK(changes[1].subject == "big/new (192.0.2.1)");
}

TEST_CASE("one target is checked once, however many pools share it") {
  Config config;
  config.checks.resize(2);
  config.checks[0].name = "connect";
  config.checks[1].name = "other";
  config.checks[1].port = 9000;
  const auto add_service = [&](std::uint16_t first, std::string_view pool_name) {
    auto& service = config.services.emplace_back();
    service.ports = {first, static_cast<std::uint16_t>(first + 5)};
    service.pool = pool_name;
  };
  add_service(443, "a");
  add_service(80, "a");
  add_service(443, "b");
  const auto add_pool = [&](std::string_view name, std::string_view check, const Labels& backends) {
    auto& added = config.pools.emplace_back();
    added.name = name;
    added.check = check;
    for (const auto& text : backends) {
      auto& one = added.backends.emplace_back();
      one.name = text;
      one.address = address(text);
    }
  };
  add_pool("a", "connect", {"192.0.2.1"});
  add_pool("b", "connect", {"192.0.2.1", "192.0.2.2"});
  add_pool("c", "other", {"192.0.2.1"});
  add_pool("d", "", {"192.0.2.3"});
  const auto targets = check_targets(config);
  REQUIRE(targets.size() == 3);
  CHECK(targets.at({address("192.0.2.1"), 443, "connect"}) ==
        std::vector<MembershipKey>{{"a", address("192.0.2.1")}, {"b", address("192.0.2.1")}});
  CHECK(targets.contains({address("192.0.2.2"), 443, "connect"}));
  CHECK(targets.contains({address("192.0.2.1"), 9000, "other"}));
}

}  // namespace
}  // namespace holdfast

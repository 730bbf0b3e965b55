// SPDX-License-Identifier: Apache-2.0
// What `holdfast lookup` makes of the data plane's answer: names and reasons, and its text.
#include "ctrl/command/lookup.h"

#include <sstream>

#include "lib/protocol/json.h"
#include "tests/catch.h"

namespace holdfast {
namespace {

constexpr BackendNumber kFirst{0};
constexpr BackendNumber kSecond{1};

std::vector<PoolReport> pools() {
  PoolReport web;
  web.name = "web";
  web.backends.resize(2);
  web.backends[0].name = "b1";
  web.backends[0].address = *IpAddress::parse("192.0.2.1");
  web.backends[0].number = kFirst;
  web.backends[0].state = BackendState::down;
  web.backends[0].reason = "check failed";
  web.backends[1].name = "b2";
  web.backends[1].address = *IpAddress::parse("192.0.2.2");
  web.backends[1].number = kSecond;
  web.backends[1].state = BackendState::eligible;
  web.backends[1].reason = "up";
  return {web};
}

const FlowQuestion kQuestion{.protocol = IpProtocol::tcp,
                             .client = *IpAddress::parse("2001:db8::7"),
                             .client_port = 40001,
                             .vip = *IpAddress::parse("2001:db8::10"),
                             .vip_port = 443};

FlowAnswer answer(const FlowChoice& next) {
  return {.is_vip = true,
          .service = ServiceNumber{0},
          .tag = 0xabcd,
          .slot = 7,
          .slots = 1009,
          .base_owner = kFirst,
          .effective_owner = kSecond,
          .workers = {{.next = next, .syn = next, .syn_after_silence = next}}};
}

Json told(const FlowAnswer& about) { return explain(kQuestion, about, "https", "web", pools()); }

std::string because(const FlowAnswer& about) {
  return text_at(told(about)["workers"].at(0)["next"], "because");
}

std::string text(const FlowAnswer& about) { return lookup_command().render(told(about)); }

/// A line of the text: its name, and behind some spaces its value.
bool has_row(const FlowAnswer& about, std::string_view name, std::string_view value) {
  std::istringstream lines(text(about));
  std::string line;
  while (std::getline(lines, line)) {
    if (!line.starts_with(std::string(name) + "  ")) continue;
    if (line.substr(line.find_first_not_of(' ', name.size())) == value) return true;
  }
  return false;
}

TEST_CASE("lookup gives the reason for each rule that can decide") {
  const FlowChoice overlay{.rule = FlowRule::slot, .backend = kSecond};
  CHECK(because(answer(overlay)) ==
        "it is the slot's owner in the overlay, instead of the base owner web/b1, which is down "
        "(check failed)");
  auto base = answer(overlay);
  base.base_owner = kSecond;
  CHECK(because(base) == "it is the slot's base owner");
  CHECK(because(answer({.rule = FlowRule::slot, .dropped = DropReason::no_backend})) ==
        "no backend of pool web may take new flows");
  CHECK(because(answer({.rule = FlowRule::unchecked_base, .backend = kFirst})) ==
        "it is the slot's base owner and has not been checked since the start: a flow from before "
        "the start most likely was there");
  CHECK(because(answer({.rule = FlowRule::base_in_grace, .backend = kFirst})) ==
        "it is the slot's base owner and went down a moment ago: a flow that runs most likely was "
        "there");
  CHECK(because(answer({.rule = FlowRule::unchecked_base, .dropped = DropReason::no_backend})) ==
        "the slot's base owner is web/b1, and has not been checked since the start: new flows wait "
        "for that, the client sends again");

  auto placed = answer({.rule = FlowRule::own_table, .backend = kFirst});
  placed.tables = {{.worker = 0, .backend = kFirst, .stays = true}};
  CHECK(because(placed) == "the flow table of worker 0 has it");
  auto other = answer({.rule = FlowRule::other_table, .backend = kFirst});
  other.tables = {{.worker = 3, .backend = kFirst, .stays = true}};
  CHECK(because(other) == "the flow table of worker 3 has it");
  auto gone = answer(overlay);
  gone.tables = {{.worker = 0, .backend = kFirst, .stays = false}};
  CHECK(because(gone) ==
        "the flow table of worker 0 has it on web/b1, which is down (check failed), and its flows "
        "do not stay; it is the slot's owner in the overlay, instead of the base owner web/b1, "
        "which is down (check failed)");
  gone.tables[0].backend = BackendNumber{99};
  CHECK(because(gone).find("has it on a removed backend, and its flows") != std::string::npos);
  CHECK(because(answer({.rule = FlowRule::slot,
                        .backend = kSecond,
                        .dropped = DropReason::neigh_unresolved}))
            .find("; but its next hop was never resolved, so the packet is dropped") !=
        std::string::npos);
}

TEST_CASE("lookup in JSON has names, slot, owners and tables") {
  auto placed = answer({.rule = FlowRule::own_table, .backend = kFirst});
  placed.tables = {{.worker = 0,
                    .backend = kFirst,
                    .state = FlowSighting::State::closing,
                    .proven = true,
                    .stays = true}};
  const Json json = told(placed);
  CHECK(json["source"] == "[2001:db8::7]:40001");
  CHECK(json["destination"] == "[2001:db8::10]:443");
  CHECK(json["service"] == "https");
  CHECK(json["tag"] == "0000000abcd");
  CHECK(json["slot"] == 7);
  CHECK(json["base_owner"]["backend"] == "web/b1");
  CHECK(json["base_owner"]["state"] == "down");
  CHECK(json["effective_owner"]["address"] == "192.0.2.2");
  CHECK(json["flow_tables"].at(0) == Json{{"worker", 0},
                                          {"backend", "web/b1"},
                                          {"state", "closing"},
                                          {"proven", true},
                                          {"stays", true}});
  CHECK(json["workers"].at(0)["next"]["rule"] == "flow_table");
  CHECK(json["workers"].at(0)["next"]["dropped"].is_null());
}

TEST_CASE("lookup in text says it once where all workers agree, else for each") {
  const FlowChoice slot{.rule = FlowRule::slot, .backend = kSecond};
  auto same = answer(slot);
  same.workers.push_back(same.workers[0]);
  CHECK(has_row(same, "goes to", "web/b2"));
  CHECK(text(same).find("worker 1") == std::string::npos);
  CHECK(text(same).find("after 60 s") == std::string::npos);
  CHECK(has_row(same, "base owner", "web/b1, down (check failed)"));
  CHECK(has_row(same, "flow table", "no worker has it"));
  CHECK(has_row(same, "tag", "0000000abcd"));

  auto differs = same;
  differs.workers[1].next =
      differs.workers[1].syn = {.rule = FlowRule::own_table, .backend = kFirst};
  differs.tables = {{.worker = 1,
                     .backend = kFirst,
                     .state = FlowSighting::State::established,
                     .proven = true,
                     .stays = true}};
  CHECK(has_row(differs, "goes to at worker 0", "web/b2"));
  CHECK(has_row(differs, "goes to at worker 1", "web/b1"));
  CHECK(text(differs).find("after 60 s of silence") != std::string::npos);
  CHECK(has_row(differs, "flow table", "worker 1: web/b1, established, proven"));
}

TEST_CASE("lookup of a stateless service's packets says that no table counts") {
  auto stateless = answer({.rule = FlowRule::stateless, .backend = kSecond});
  stateless.stateless = true;
  stateless.base_owner = kSecond;
  CHECK(because(stateless) == "it is the slot's base owner, and the service is stateless");
  CHECK(told(stateless)["workers"].at(0)["next"]["rule"] == "stateless");
  CHECK(told(stateless)["stateless"] == true);
  CHECK(told(answer({}))["stateless"] == false);
  CHECK(has_row(stateless, "goes to", "web/b2"));
  CHECK(has_row(stateless, "flow table", "none: the service is stateless"));
}

TEST_CASE("lookup of what is no VIP's or no service's says where it ends") {
  CHECK(text({}).find("the kernel: 2001:db8::10 is no VIP") != std::string::npos);
  CHECK(text({.is_vip = true, .dropped = DropReason::unknown_port})
            .find("nowhere, it is dropped (unknown_port): to a VIP, but no service has this "
                  "protocol and port") != std::string::npos);
  CHECK(text({.is_vip = true, .dropped = DropReason::unknown_port, .rejected = true})
            .find("nowhere, it is rejected (unknown_port)") != std::string::npos);
}

}  // namespace
}  // namespace holdfast

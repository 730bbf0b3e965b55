// SPDX-License-Identifier: Apache-2.0
// What `holdfast flows durations` makes of what workers have recorded and of the open flows.
#include "ctrl/command/flow_durations.h"

#include "lib/protocol/json.h"
#include "tests/catch.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

constexpr ServiceNumber kService{3};

FlowRow stream(std::chrono::milliseconds age, std::chrono::milliseconds idle = 0ms) {
  return {.age = age,
          .idle = idle,
          .service = kService,
          .state = FlowRow::State::established,
          .stream = true};
}
FlowRow closing(std::chrono::milliseconds age, bool reset) {
  FlowRow row = stream(age);
  row.state = FlowRow::State::closing;
  row.reset = reset;
  return row;
}

StreamRecords ended(std::uint64_t count, Quarters duration) {
  StreamRecords records;
  records.lifetimes.ended[duration_bin(duration)] = count;
  return records;
}

Json tell(const StreamTally& tally, bool tcp = true) {
  Json json{{"service", "https"}, {"protocol", tcp ? "tcp" : "udp"}, {"since_seconds", 7200.0}};
  json.update(tally.json(tcp));
  return json;
}
std::string text(const StreamTally& tally, bool tcp = true) {
  return flows_durations_command().render(tell(tally, tcp));
}

}  // namespace

TEST_CASE("durations: what ended is told with its quantiles, and how many there were") {
  StreamRecords over = ended(90, 2s);
  over += ended(10, 8s);
  over.reset = 25;
  over.excluded = 4;
  const StreamTally tally(kService, over);
  CHECK(text(tally) ==
        "service        https\n"
        "p50            2.0 s\n"
        "p90            2.0 s\n"
        "p99            8.3 s\n"
        "max            8.3 s\n"
        "client resets  25.0 % of those that ended (25)\n"
        "streams        100 ended, 0 open, 0 lost from sight; since the start 2 h 0 min ago\n"
        "excluded       4 that had begun elsewhere or before\n");
  const auto json = tell(tally);
  CHECK(json["p50"] == Json{{"seconds", 2.0}, {"more", false}});
  CHECK(json["ended"] == 100);
  CHECK(json["reset_share"] == 0.25);
}

TEST_CASE("durations: open streams are taken into account, up to their last packet") {
  StreamTally tally(kService, ended(10, 2s));
  CHECK(tell(tally)["p90"] == Json{{"seconds", 2.0}, {"more", false}});
  for (int i = 0; i < 10; ++i) tally.add(stream(100s, 36s));
  CHECK(tell(tally)["p50"] == Json{{"seconds", 2.0}, {"more", false}});
  CHECK(tell(tally)["p90"] == Json{{"seconds", 64.0}, {"more", true}});
  CHECK(tell(tally)["open"] == 10);
  CHECK(tell(tally)["lost"] == 0);
  CHECK(text(tally).find(
            "p90            more than 1 min 4 s: too few have ended to say how much\n") !=
        std::string::npos);
  CHECK(text(tally).find("max            more than 1 min 4 s: its end was not seen\n") !=
        std::string::npos);
}

TEST_CASE("durations: a stream that is closing has ended, one that was reset is counted") {
  StreamTally tally(kService, {});
  tally.add(closing(3s, false));
  tally.add(closing(3s, true));
  CHECK(tell(tally)["ended"] == 2);
  CHECK(tell(tally)["reset"] == 1);
  CHECK(tell(tally)["p50"] == Json{{"seconds", 3.0}, {"more", false}});
}

TEST_CASE("durations: other services, what is no stream, and adopted flows are left out") {
  StreamTally tally(kService, {});
  FlowRow other = stream(1s);
  other.service = ServiceNumber{4};
  FlowRow embryo = stream(1s);
  embryo.stream = false;
  embryo.state = FlowRow::State::embryonic;
  FlowRow scan = closing(1s, false);
  scan.stream = false;
  FlowRow adopted = stream(1s);
  adopted.adopted = true;
  for (const FlowRow& row : {other, embryo, scan, adopted}) tally.add(row);
  const auto json = tell(tally);
  CHECK(json["ended"] == 0);
  CHECK(json["open"] == 0);
  CHECK(json["excluded"] == 1);
  CHECK(json["p50"].is_null());
  CHECK(json["max"].is_null());
  CHECK(json["reset_share"].is_null());
  CHECK(text(tally) ==
        "service    https\n"
        "durations  none: no stream that began since the start 2 h 0 min ago was seen\n"
        "excluded   1 that had begun elsewhere or before\n");
}

TEST_CASE("durations: streams that workers lost from sight count as lasting at least so long") {
  StreamRecords over = ended(1, 1s);
  over.lifetimes.censored[duration_bin(4s)] = 3;
  const StreamTally tally(kService, over);
  CHECK(tell(tally)["lost"] == 3);
  CHECK(tell(tally)["open"] == 0);
  CHECK(tell(tally)["p50"] == Json{{"seconds", 4.0}, {"more", true}});
}

TEST_CASE("durations: UDP knows no resets") {
  const StreamTally tally(kService, ended(1, Quarters{0}));
  CHECK_FALSE(tell(tally, false).contains("reset"));
  CHECK(text(tally, false).find("resets") == std::string::npos);
  CHECK(text(tally, false).find("p50      under 0.25 s\n") != std::string::npos);
}

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// What `holdfast drops` shows of the daemon's answer.
#include "ctrl/command/drops.h"

#include "lib/protocol/json.h"
#include "tests/catch.h"

namespace holdfast {
namespace {

std::string shown(const std::string& answer) {
  return drops_command().render(parse_json(answer).value());
}

TEST_CASE("drops: a table, the rates' time, and the latest packet of each reason as bytes") {
  CHECK(shown(R"({"total": 5, "rate_over_seconds": 10.0, "reasons": [
    {"reason": "unknown_port", "total": 3, "per_second": 0.25, "meaning": "no such service",
     "latest": {"worker": 1, "seconds_ago": 1.5, "length": 1514,
                "head": "0200000000010200000000fe080045004865792041"}},
    {"reason": "too_big", "total": 2, "per_second": 0, "meaning": "too long", "latest": null}]})") ==
        "REASON        TOTAL  PER SECOND  MEANING\n"
        "unknown_port      3         0.2  no such service\n"
        "too_big           2         0.0  too long\n"
        "5 packets dropped in all; rates are over the last 10.0 s\n"
        "\n"
        "unknown_port: a frame of 1514 bytes, 1.5 s ago, worker 1\n"
        "  0000  02 00 00 00 00 01 02 00  00 00 00 fe 08 00 45 00  |..............E.|\n"
        "  0010  48 65 79 20 41                                    |Hey A|\n");
}

TEST_CASE("drops: nothing was dropped") {
  CHECK(shown(R"({"total": 0, "rate_over_seconds": 10.0, "reasons": []})") ==
        "no packet was dropped\n");
}

TEST_CASE("drops: what is no hexadecimal ends the bytes, and no bytes are none") {
  const std::string around =
      R"({"total": 1, "reasons": [{"reason": "r", "total": 1, "latest": {"head": "HEAD"}}]})";
  const auto lines_for = [&](const std::string& head) {
    auto answer = around;
    answer.replace(answer.find("HEAD"), 4, head);
    const auto text = shown(answer);
    return text.substr(text.find("r: a frame"));
  };
  const std::string title = "r: a frame of 0 bytes, 0.0 s ago, worker 0\n";
  CHECK(lines_for("") == title);
  CHECK(lines_for("41-142") == title + "  0000  41" + std::string(48, ' ') + "|A|\n");
}

}  // namespace
}  // namespace holdfast

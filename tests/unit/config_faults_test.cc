// SPDX-License-Identifier: Apache-2.0
// How the faults of a configuration are told, also those of a hostile or hopeless one.
#include "tests/unit/config_text.h"

using namespace holdfast;
using namespace holdfast::config_text;

TEST_CASE("an empty config file is told what it needs") {
  CHECK(faults_of("") ==
        std::vector<std::string>{
            "h.toml: [dataplane] needs \"ports\": a list such as [{ name = \"uplink\", interface = "
            "\"eth1\" }]",
            "h.toml: [dataplane] needs \"hash_seed_file\": a file with 16 hexadecimal digits, the "
            "same on every load balancer"});
}

TEST_CASE("a syntax error is reported alone, with its place") {
  const auto faults = parse_config(edited("workers = 1", "workers = = 1"), "h.toml").faults;
  REQUIRE(faults.size() == 1);
  CHECK(faults[0].line == 7);
  CHECK(faults[0].column == 11);
  CHECK(faults[0].message.find('\n') == std::string::npos);
}

TEST_CASE("a key that is given twice is a syntax error") {
  const auto faults =
      parse_config(edited("workers = 1", "workers = 1\nworkers = 2"), "h.toml").faults;
  REQUIRE(faults.size() == 1);
  CHECK(faults[0].line == 8);
}

TEST_CASE("every fault is reported at once, in the order of the file") {
  auto text = edited("workers = 1", "workers = 0");
  text += "fall = \"x\"\ninterval = 3\n";
  CHECK(faults_of(text) ==
        std::vector<std::string>{"h.toml:7:11: \"workers\" must be 1 to 128, not 0",
                                 "h.toml:38:8: \"fall\" must be a whole number, not a string",
                                 "h.toml:39:12: \"interval\" must be a duration in quotes such as "
                                 "\"10s\", not a whole number"});
}

TEST_CASE("an unknown key is named with its place and the nearest key") {
  check_edits({
      {"workers = 1", "worker = 1",
       "h.toml:7:1: unknown key \"worker\" in [dataplane]; did you mean \"workers\"?"},
      {"queues = 2", "qeues = 2",
       "h.toml:5:45: unknown key \"qeues\" in port \"up\"; did you mean \"queues\"?"},
      {"udp = \"30s\"", "upd = \"30s\"",
       "h.toml:28:14: unknown key \"upd\" in the timeouts of service \"media\"; did you mean "
       "\"udp\"?"},
      {"weight = 0", "colour = 0",
       "h.toml:34:43: unknown key \"colour\" in backend 2001:db8:1::22 of pool \"proxies\""},
      {"[site]", "[sit]", "h.toml:1:2: unknown key \"sit\" in the file; did you mean \"site\"?"},
      {"check = \"alive\"", "check = \"alive\"\nslow_start = \"30s\"",
       "h.toml:33:1: unknown key \"slow_start\" in pool \"proxies\""},
      {"name = \"fra1\"", "name = \"fra1\"\n\"a\\nb\" = 1",
       "h.toml:3:1: unknown key \"a\\x0ab\" in [site]"},
  });
}

TEST_CASE("a long or strange text is cut and escaped in a fault") {
  const auto faults = faults_of(
      edited("\"2001:db8::10\"\n\n", std::string{"\""} + std::string(100, 'x') + "\"\n\n"));
  REQUIRE(faults.size() == 2);
  CHECK(faults[0] ==
        "h.toml:14:11: \"" + std::string(64, 'x') + "...\" is not an IPv4 or IPv6 address");
  CHECK(faults_of(edited("name = \"fra1\"", "name = \"\\u001b[2J\"")).at(0).find("\\x1b[2J") !=
        std::string::npos);
}

TEST_CASE("the config file's own name is escaped in a fault") {
  CHECK(parse_config("x = 1", "a\nb.toml").faults.at(0).text().starts_with("a\\x0ab.toml: "));
}

TEST_CASE("hostile texts are faults, never crashes") {
  CHECK(faults_of("name = \"\xff\"").size() == 1);
  CHECK(faults_of("\xc3").size() == 1);
  CHECK(faults_of(std::string(3, '\0')).size() == 1);
  CHECK(faults_of(std::string(17 * 1024 * 1024, ' ')) ==
        std::vector<std::string>{"h.toml: the file has 17825792 bytes; at most 16777216 are read"});
  CHECK(faults_of(std::string(100'000, '[')).size() == 1);
  CHECK(faults_of(std::string{"a = "} + std::string(100'000, '[')).size() == 1);
  std::string nested;
  for (int i = 0; i < 100'000; ++i) nested += "{a=";
  CHECK(faults_of("a = " + nested).size() == 1);
  std::string endless = "\n  a";
  for (int i = 0; i < 1'000'000; ++i) endless += ".a";
  CHECK(faults_of(endless + " = 1") ==
        std::vector<std::string>{"h.toml:2:132: a key with more than 64 parts"});
  CHECK(faults_of("[" + endless.substr(3) + "]").size() == 1);
}

TEST_CASE("a ruler of dots in a comment is no endless key") {
  good_config(std::string{"# "} + std::string(300, '.') + "\n" + std::string{kGood});
}

TEST_CASE("a hopeless file brings a bounded list of faults") {
  std::string text{kGood};
  for (int i = 0; i < 5000; ++i) text += "k" + std::to_string(i) + " = 1\n";
  const auto faults = faults_of(text);
  REQUIRE(faults.size() == 1001);
  CHECK(faults.back() == "h.toml: 4000 more faults are not shown");
}

// SPDX-License-Identifier: Apache-2.0
#include <sstream>
#include <variant>

#include "lib/base/printable.h"
#include "tests/catch.h"
#include "tools/agent/bpffs.h"
#include "tools/agent/command_line.h"
#include "tools/agent/pin_name.h"
#include "tools/agent/settings.h"

namespace holdfast::agent {
namespace {

Result<Command> read(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return read_command_line(words);
}

/// What is said about a line that is no command, or an empty text.
std::string refusal(const std::string& line) {
  const auto command = read(line);
  if (command) return {};
  CHECK(command.error().code == "usage");
  return command.error().message;
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

constexpr const char* kGood = "attach eth0 --vip 203.0.113.10 --lb 192.0.2.0/24";

}  // namespace

TEST_CASE("attach takes one word for each --vip, --lb and --local, and the interface anywhere") {
  const auto command = read(
      "attach --vip 203.0.113.10 --vip 2001:db8::10 eth0.7 --lb 192.0.2.1 --lb 2001:db8:f::/64 "
      "--local 192.0.2.9 --mode generic --pin-dir /run/pins");
  REQUIRE(command);
  const auto& attach = std::get<AttachCommand>(*command);
  CHECK(attach.interface == "eth0.7");
  CHECK(attach.mode == WantedMode::generic);
  CHECK(attach.pin_dir == "/run/pins");
  CHECK(attach.settings ==
        DecapSettings{{*IpAddress::parse("203.0.113.10"), *IpAddress::parse("2001:db8::10")},
                      {*Prefix::parse("192.0.2.1"), *Prefix::parse("2001:db8:f::/64")},
                      {*IpAddress::parse("192.0.2.9")}});
}

TEST_CASE("attach has defaults: mode auto, the usual pin folder, the interface's own addresses") {
  const auto command = read(kGood);
  REQUIRE(command);
  const auto& attach = std::get<AttachCommand>(*command);
  CHECK(attach.mode == WantedMode::automatic);
  CHECK(attach.pin_dir == PinFolder::kDefault);
  CHECK(attach.settings.locals.empty());
}

TEST_CASE("what is named twice counts once, and order does not matter") {
  const auto one = read("attach eth0 --vip 203.0.113.2 --vip 203.0.113.1 --lb 192.0.2.1");
  const auto two =
      read("attach eth0 --vip 203.0.113.1 --vip 203.0.113.2 --vip 203.0.113.1 --lb 192.0.2.1/32");
  REQUIRE(one);
  REQUIRE(two);
  CHECK(std::get<AttachCommand>(*one).settings == std::get<AttachCommand>(*two).settings);
  CHECK(std::get<AttachCommand>(*two).settings.vips.size() == 2);
}

TEST_CASE("status and detach name their interface") {
  CHECK(std::get<StatusCommand>(*read("status")).interface.empty());
  CHECK(std::get<StatusCommand>(*read("status eth1 --json")).interface == "eth1");
  CHECK(std::get<StatusCommand>(*read("status eth1 --json")).json);
  CHECK(std::get<DetachCommand>(*read("detach eth1")).interface == "eth1");
}

TEST_CASE("a word too many, too few or wrong is a usage error that names it") {
  const std::string good = kGood;
  CHECK(contains(refusal(""), "a command is required: attach, status, detach"));
  CHECK(contains(refusal("fly"), "there is no command fly"));
  CHECK(contains(refusal("attach eth0 --lb 192.0.2.1"), "--vip is required"));
  CHECK(contains(refusal("attach eth0 --vip 203.0.113.10"), "--lb is required"));
  CHECK(contains(refusal(good + " eth1"), "eth1"));
  CHECK(contains(refusal(good + " --vip 203.0.113.1 203.0.113.2"), "203.0.113.2"));
  CHECK(contains(refusal(good + " --vip 203.0.113.256"), "--vip 203.0.113.256: not an IPv4"));
  CHECK(contains(refusal(good + " --vip 203.0.113.0/24"), "--vip 203.0.113.0/24: not an IPv4"));
  CHECK(contains(refusal(good + " --vip ::"), "--vip ::: not the address of one host"));
  CHECK(contains(refusal(good + " --vip 127.0.0.1"), "not the address of one host"));
  CHECK(contains(refusal(good + " --local 239.1.1.1"), "--local 239.1.1.1: not the address"));
  CHECK(contains(refusal(good + " --lb 192.0.2.1/24"), "--lb 192.0.2.1/24: not an address or"));
  CHECK(contains(refusal(good + " --mode quick"), "--mode quick: not auto, native or generic"));
  CHECK(contains(refusal("status eth0 eth1"), "eth1"));
  CHECK(contains(refusal("detach"), "required"));
}

TEST_CASE("an empty word is a usage error, not the word of something else") {
  const auto said = [](std::vector<std::string> words) {
    const auto command = read_command_line(std::move(words));
    REQUIRE_FALSE(command);
    CHECK(command.error().code == "usage");
    return command.error().message;
  };
  const std::string vip = "203.0.113.10";
  const std::string lb = "192.0.2.1";
  CHECK(contains(said({"attach", "", "--vip", vip, "--lb", lb}), "name IF is empty"));
  CHECK(contains(said({"detach", ""}), "name IF is empty"));
  CHECK(contains(said({"status", ""}), "name IF is empty"));  // and not all interfaces
  CHECK(contains(said({"status", "--pin-dir", ""}), "--pin-dir is empty"));
  CHECK(contains(said({"attach", "eth0", "--vip", "", "--lb", lb}), "--vip \"\": not an IPv4"));
  CHECK(contains(said({"attach", "eth0", "--vip", vip, "--lb", ""}), "--lb \"\": not an address"));
}

TEST_CASE("a word from outside comes back escaped and cut") {
  const std::string strange = "\x1b[2J\n";
  const std::string long_word(70'000, 'x');
  for (const auto& word : {strange, long_word}) {
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{word},
          {"status", "eth0", word},
          {"attach", "eth0", "--vip", word, "--lb", "192.0.2.1"},
          {"attach", "eth0", "--vip", "203.0.113.10", "--lb", word},
          {"attach", "eth0", "--vip", "203.0.113.10", "--lb", "192.0.2.1", "--mode", word}}) {
      const auto command = read_command_line(words);
      REQUIRE_FALSE(command);
      CHECK(find_control(command.error().text()).empty());
      CHECK(command.error().text().size() < 700);
    }
  }
}

TEST_CASE("a load balancer prefix of everybody is taken with a warning") {
  const auto warning = [](const std::vector<std::string>& lbs) {
    return warning_of(read_settings({"203.0.113.10"}, lbs, {}).value());
  };
  CHECK(warning({"192.0.2.0/24", "2001:db8::/32", "0.0.0.0/1"}).empty());
  CHECK(warning({"192.0.2.0/24", "0.0.0.0/0"}).starts_with("with --lb 0.0.0.0/0 anybody may"));
  CHECK(warning({"::/0"}).starts_with("with --lb ::/0 anybody may send"));
  CHECK(warning({"::/0", "0.0.0.0/0"}).starts_with("with --lb 0.0.0.0/0 and --lb ::/0 any"));
}

TEST_CASE("more VIPs than the program's map holds are refused with both numbers") {
  std::vector<std::string> vips;
  vips.reserve(HOLDFAST_MAX_VIPS + 1);
  for (unsigned i = 0; i < HOLDFAST_MAX_VIPS; ++i)
    vips.push_back("10.0." + std::to_string(i / 256) + "." + std::to_string(i % 256));
  CHECK(read_settings(vips, {"192.0.2.1"}, {}));
  vips.emplace_back("10.1.0.0");
  const auto refused = read_settings(vips, {"192.0.2.1"}, {});
  REQUIRE_FALSE(refused);
  CHECK(contains(refused.error().message, "4097"));
  CHECK(contains(refused.error().message, "4096"));
}

TEST_CASE("every help has an example") {
  for (const char* line : {"--help", "attach --help", "status --help", "detach --help"}) {
    const auto command = read(line);
    REQUIRE(command);
    CHECK(contains(std::get<HelpCommand>(*command).text, "Example:\n  holdfast-agent "));
  }
}

TEST_CASE("an address and its key in the program's maps are the same thing") {
  for (const char* text : {"203.0.113.10", "2001:db8::10", "::ffff:203.0.113.10", "0.0.0.1"}) {
    const auto address = *IpAddress::parse(text);
    CHECK(from_key(to_key(address)) == address);
  }
  for (const char* text : {"0.0.0.0/0", "192.0.2.0/24", "192.0.2.1", "::/0", "2001:db8::/33"}) {
    const auto prefix = *Prefix::parse(text);
    CHECK(from_key(to_key(prefix)) == prefix);
  }
  CHECK(to_key(*Prefix::parse("192.0.2.0/24")).length == 32 + 24);
}

TEST_CASE("an interface's name becomes a name without dots and back") {
  CHECK(to_pin_name("eth0.100") == "eth0%2e100");
  for (const char* name : {"eth0", "eth0.100", "a.b.c", "%2e", "x%", "%zz", "..."}) {
    CHECK(from_pin_name(to_pin_name(name)) == name);
    CHECK_FALSE(contains(to_pin_name(name), "."));
  }
}

}  // namespace holdfast::agent

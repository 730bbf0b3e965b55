// SPDX-License-Identifier: Apache-2.0
#include "lib/model/service_table.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "tests/catch.h"
#include "tests/sanitized.h"

using namespace holdfast;

namespace {

IpAddress ip(std::string_view text) { return IpAddress::parse(text).value(); }

struct Answer {
  bool is_vip;
  ServiceNumber service;
  friend bool operator==(const Answer&, const Answer&) = default;
};

Answer look(const ServiceTable& table, std::string_view address, IpProtocol protocol,
            std::uint16_t port) {
  const auto match = table.lookup(ip(address), protocol, Be16::from_host(port));
  return {match.is_vip, match.service};
}

constexpr Answer kNotAVip{false, kNoService};
constexpr Answer kNoRule{true, kNoService};
constexpr Answer found(unsigned number) {
  return {true, ServiceNumber{static_cast<std::uint16_t>(number)}};
}

constexpr ServiceRule rule(const IpAddress& vip, IpProtocol protocol, PortRange ports,
                           unsigned number) {
  return {vip, protocol, ports, ServiceNumber{static_cast<std::uint16_t>(number)}};
}

}  // namespace

TEST_CASE("an empty service table knows no VIP") {
  const ServiceTable table;
  CHECK(look(table, "203.0.113.10", IpProtocol::tcp, 80) == kNotAVip);
  CHECK_FALSE(table.is_vip(ip("203.0.113.10")));
}

TEST_CASE("an exact port wins over a range, a range over any, whatever the order of the rules") {
  const IpAddress vip = ip("203.0.113.10");
  std::vector<ServiceRule> rules{rule(vip, IpProtocol::tcp, {0, 65535}, 1),
                                 rule(vip, IpProtocol::tcp, {8000, 8999}, 2),
                                 rule(vip, IpProtocol::tcp, {8443, 8443}, 3)};
  std::sort(rules.begin(), rules.end(),
            [](const auto& a, const auto& b) { return a.service < b.service; });
  do {
    const ServiceTable table({}, rules);
    CHECK(look(table, "203.0.113.10", IpProtocol::tcp, 8443) == found(3));
    CHECK(look(table, "203.0.113.10", IpProtocol::tcp, 8442) == found(2));
    CHECK(look(table, "203.0.113.10", IpProtocol::tcp, 8444) == found(2));
    CHECK(look(table, "203.0.113.10", IpProtocol::tcp, 8000) == found(2));
    CHECK(look(table, "203.0.113.10", IpProtocol::tcp, 8999) == found(2));
    CHECK(look(table, "203.0.113.10", IpProtocol::tcp, 7999) == found(1));
    CHECK(look(table, "203.0.113.10", IpProtocol::tcp, 9000) == found(1));
    CHECK(look(table, "203.0.113.10", IpProtocol::tcp, 0) == found(1));
    CHECK(look(table, "203.0.113.10", IpProtocol::tcp, 65535) == found(1));
  } while (std::next_permutation(rules.begin(), rules.end(), [](const auto& a, const auto& b) {
    return a.service < b.service;
  }));
}

TEST_CASE("a protocol or port without a rule is a VIP without a service") {
  const IpAddress vip = ip("203.0.113.10");
  const ServiceRule rules[]{rule(vip, IpProtocol::tcp, {80, 80}, 1),
                            rule(vip, IpProtocol::tcp, {65535, 65535}, 2)};
  const ServiceTable table({}, rules);
  CHECK(look(table, "203.0.113.10", IpProtocol::tcp, 81) == kNoRule);
  CHECK(look(table, "203.0.113.10", IpProtocol::tcp, 79) == kNoRule);
  CHECK(look(table, "203.0.113.10", IpProtocol::tcp, 65535) == found(2));
  CHECK(look(table, "203.0.113.10", IpProtocol::udp, 80) == kNoRule);
  CHECK(look(table, "203.0.113.10", IpProtocol::icmp, 80) == kNoRule);
  CHECK(look(table, "203.0.113.11", IpProtocol::tcp, 80) == kNotAVip);
}

TEST_CASE("a VIP without any rule is still a VIP") {
  const VipEntry vips[]{{ip("2001:db8::a")}};
  const ServiceTable table(vips, {});
  CHECK(table.is_vip(ip("2001:db8::a")));
  CHECK(look(table, "2001:db8::a", IpProtocol::tcp, 80) == kNoRule);
}

TEST_CASE("what a VIP does without a service is told where there is none") {
  const IpAddress rejecting = ip("203.0.113.10");
  const VipEntry vips[]{{rejecting, {.echo = false, .reject_unknown_port = true}},
                        {ip("203.0.113.11")}};
  const ServiceRule rules[]{rule(rejecting, IpProtocol::tcp, {80, 80}, 1),
                            rule(ip("203.0.113.12"), IpProtocol::tcp, {80, 80}, 1)};
  const ServiceTable table(vips, rules);
  const auto options = [&](const char* vip, IpProtocol protocol) {
    return table.lookup(ip(vip), protocol, Be16::from_host(81)).options;
  };
  for (const auto protocol : {IpProtocol::tcp, IpProtocol::udp, IpProtocol::icmp}) {
    CHECK(options("203.0.113.10", protocol) == VipOptions{false, true});
    CHECK(options("203.0.113.11", protocol) == VipOptions{});
    CHECK(options("203.0.113.12", protocol) == VipOptions{});
  }
}

TEST_CASE("an IPv4-mapped destination never meets the IPv4 service") {
  const ServiceRule rules[]{rule(ip("203.0.113.10"), IpProtocol::tcp, {80, 80}, 1)};
  const ServiceTable table({}, rules);
  CHECK(look(table, "::ffff:203.0.113.10", IpProtocol::tcp, 80) == kNotAVip);
}

TEST_CASE("the table agrees with a search through the rules") {
  std::mt19937 engine(5);
  const auto random = [&engine] { return static_cast<std::uint32_t>(engine()); };
  std::vector<ServiceRule> rules;
  std::vector<IpAddress> vips;
  for (std::uint32_t i = 0; i < 200; ++i) vips.push_back(IpAddress::v4(Be32::from_host(random())));
  unsigned number = 0;
  for (const IpAddress& vip : vips) {
    // Disjoint ranges, some exact ports inside them, at times an "any".
    std::uint32_t at = random() % 100;
    while (at < 60000) {
      const auto last = static_cast<std::uint16_t>(std::min(65535u, at + random() % 9000 + 1));
      const auto first = static_cast<std::uint16_t>(at);
      rules.push_back(rule(vip, IpProtocol::tcp, {first, last}, number++));
      const auto exact = static_cast<std::uint16_t>(first + random() % (last - first + 1u));
      rules.push_back(rule(vip, IpProtocol::tcp, {exact, exact}, number++));
      at = last + 1u + random() % 9000;
    }
    if (random() % 2 == 0) rules.push_back(rule(vip, IpProtocol::tcp, {0, 65535}, number++));
  }
  std::shuffle(rules.begin(), rules.end(), engine);
  const ServiceTable table({}, rules);
  for (unsigned round = 0; round < rounds(20000); ++round) {
    const IpAddress& vip = vips[random() % vips.size()];
    const auto port = static_cast<std::uint16_t>(random());
    const ServiceRule* best = nullptr;
    for (const ServiceRule& candidate : rules)
      if (candidate.vip == vip && candidate.ports.contains(port) &&
          (best == nullptr ||
           candidate.ports.last - candidate.ports.first < best->ports.last - best->ports.first))
        best = &candidate;
    const auto match = table.lookup(vip, IpProtocol::tcp, Be16::from_host(port));
    REQUIRE(match.is_vip);
    REQUIRE(match.service == (best == nullptr ? kNoService : best->service));
  }
}

TEST_CASE("ports are written as in the configuration") {
  CHECK(PortRange{443, 443}.text() == "443");
  CHECK(PortRange{8000, 8999}.text() == "8000-8999");
  CHECK(PortRange{1, 65535}.text() == "1-65535");
  CHECK(PortRange{}.text() == "any");
}

TEST_CASE("an address as it lies in a packet is a VIP exactly when the table has it") {
  std::mt19937 engine(11);
  std::vector<VipEntry> vips;
  vips.reserve(600);
  for (int i = 0; i < 300; ++i) {
    vips.push_back({IpAddress::v4(Be32::from_host(static_cast<std::uint32_t>(engine())))});
    IpAddress::Bytes bytes{};
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(engine());
    vips.push_back({IpAddress::v6(bytes)});
  }
  const ServiceTable table(vips, {});
  for (const VipEntry& vip : vips)
    CHECK(table.is_vip(vip.address.family(), vip.address.bytes().data()));
  for (int i = 0; i < 20000; ++i) {
    IpAddress::Bytes bytes{};
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(engine());
    const auto v6 = IpAddress::v6(bytes);
    REQUIRE(table.is_vip(Family::ipv6, bytes.data()) == table.is_vip(v6));
    Be32 word;
    std::memcpy(&word, bytes.data(), sizeof word);
    REQUIRE(table.is_vip(Family::ipv4, bytes.data()) == table.is_vip(IpAddress::v4(word)));
  }
  CHECK_FALSE(ServiceTable{}.is_vip(Family::ipv6, vips[1].address.bytes().data()));
}

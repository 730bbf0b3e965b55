// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ctrl/command/bgp.h"
#include "lib/protocol/json.h"
#include "tests/catch.h"

namespace holdfast {
namespace {

using Names = std::vector<std::string_view>;

IpAddress vip(unsigned i) { return IpAddress::v4(Be32::from_host(0xc633'6400 + i)); }

ServiceConfig service(std::string name, std::vector<IpAddress> vips) {
  ServiceConfig config;
  config.name = std::move(name);
  config.vips = std::move(vips);
  return config;
}

TEST_CASE("each of thousands of VIPs has its own services, in the order of the file") {
  constexpr unsigned kVips = 2000;
  Config config;
  std::vector<IpAddress> all;
  for (unsigned i = 0; i < kVips; ++i) {
    config.vips.push_back({.address = vip(i)});
    all.push_back(vip(i));
  }
  config.services.push_back(service("first", all));
  for (unsigned i = 0; i < kVips; ++i)
    config.services.push_back(service(fmt::format("s{}", i), {vip(i), vip((i + 1) % kVips)}));
  config.services.push_back(service("last", {vip(7)}));

  const auto services = services_by_vip(config);
  REQUIRE(services.size() == kVips);
  CHECK(services.at(vip(0)) == Names{"first", "s0", "s1999"});
  CHECK(services.at(vip(7)) == Names{"first", "s6", "s7", "last"});
  std::size_t named = 0;
  for (const auto& [address, names] : services) named += names.size();
  CHECK(named == kVips + 2 * kVips + 1);
}

TEST_CASE("whose gobgpd it is, is unknown until it was up once") {
  const auto shown = [](const Json& as, const Json& router_id) {
    return bgp_command().render(
        {{"speaker", "[::1]:1"}, {"state", "up"}, {"as", as}, {"router_id", router_id}});
  };
  CHECK(shown(nullptr, nullptr).find("AS       unknown\n") != std::string::npos);
  CHECK(shown(64512U, "192.0.2.5").find("AS       64512, router ID 192.0.2.5\n") !=
        std::string::npos);
}

TEST_CASE("a VIP without a service is listed with none") {
  Config config;
  config.vips.push_back({.address = vip(1)});
  CHECK(services_by_vip(config).at(vip(1)).empty());
}

}  // namespace
}  // namespace holdfast

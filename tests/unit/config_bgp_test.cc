// SPDX-License-Identifier: Apache-2.0
// [bgp] and how VIPs are announced.
#include <string>
#include <string_view>
#include <vector>

#include "lib/config/config.h"
#include "tests/catch.h"

using namespace holdfast;
using namespace std::chrono_literals;

namespace {

constexpr std::string_view kDataplane =
    "[dataplane]\nports = [{ name = \"up\", interface = \"eth1\" }]\nhash_seed_file = \"seed\"\n";
constexpr std::string_view kBgp =
    "[bgp]\nnext_hop = \"192.0.2.5\"\nnext_hop_v6 = \"2001:db8:1::5\"\n";

/// `text` begins in line 4.
ConfigResult parse(std::string_view text) {
  return parse_config(std::string{kDataplane} + std::string{text}, "h.toml");
}

std::vector<std::string> faults_of(std::string_view text) {
  std::vector<std::string> result;
  for (const auto& fault : parse(text).faults) result.push_back(fault.text());
  return result;
}

/// VIP 203.0.113.10 in line 8 with `keys` in line 9, under a good [bgp].
std::vector<std::string> faults_of_vip(std::string_view keys) {
  return faults_of(std::string{kBgp} + "[[vip]]\naddress = \"203.0.113.10\"\n" + std::string{keys} +
                   "\n");
}

/// A [bgp] without VIPs whose line 5 is `key`.
std::vector<std::string> faults_of_bgp(std::string_view key) {
  return faults_of("[bgp]\n" + std::string{key} + "\n");
}

using Faults = std::vector<std::string>;

}  // namespace

TEST_CASE("without [bgp] nothing is announced, and nothing needs to be said of it") {
  const auto result = parse("[[vip]]\naddress = \"203.0.113.10\"\n");
  REQUIRE(result.ok());
  CHECK_FALSE(result.config.bgp);
  CHECK(result.config.control.linger == 10s);
}

TEST_CASE("[bgp] has defaults for all but the next hops of the families that are announced") {
  const auto result = parse(std::string{kBgp} + "[[vip]]\naddress = \"203.0.113.10\"\n");
  REQUIRE(result.ok());
  REQUIRE(result.config.bgp);
  CHECK(result.config.bgp->gobgp == "127.0.0.1:50051");
  CHECK(result.config.vips[0].announce);
  CHECK(result.config.vips[0].communities.empty());
  CHECK_FALSE(result.config.vips[0].med);
  CHECK(result.config.vips[0].prepend == 0);
  CHECK(parse("[bgp]\n").ok());
}

TEST_CASE("a family in which a VIP is announced needs a next hop, and the fault names the VIP") {
  CHECK(faults_of("[bgp]\n[[vip]]\naddress = \"203.0.113.10\"\n[[vip]]\naddress = "
                  "\"203.0.113.11\"\n[[vip]]\naddress = \"2001:db8::10\"\n") ==
        Faults{"h.toml:4:1: [bgp] needs \"next_hop\", an IPv4 address at which routers reach this "
               "host: VIP 203.0.113.10 is announced with it",
               "h.toml:4:1: [bgp] needs \"next_hop_v6\", an IPv6 address at which routers reach "
               "this host: VIP 2001:db8::10 is announced with it"});
  CHECK(faults_of("[bgp]\n[[vip]]\naddress = \"203.0.113.10\"\nannounce = false\n").empty());
}

TEST_CASE("a next hop is one host's address of its family, and no VIP") {
  const auto faults = [](std::string_view next_hop) {
    return faults_of("[bgp]\nnext_hop = \"" + std::string{next_hop} +
                     "\"\n[[vip]]\naddress = \"203.0.113.10\"\n");
  };
  CHECK(faults("0.0.0.0") == Faults{"h.toml:5:12: \"0.0.0.0\" is the unspecified address"});
  CHECK(faults("224.0.0.1") == Faults{"h.toml:5:12: \"224.0.0.1\" is a multicast address"});
  CHECK(faults("127.0.0.1") == Faults{"h.toml:5:12: \"127.0.0.1\" is a loopback address"});
  CHECK(faults("192.0.2.1/32") ==
        Faults{"h.toml:5:12: \"192.0.2.1/32\" is not an IPv4 or IPv6 address"});
  CHECK(faults("2001:db8::5") ==
        Faults{"h.toml:5:12: \"next_hop\" must be an IPv4 address, not \"2001:db8::5\""});
  CHECK(faults("203.0.113.10") ==
        Faults{"h.toml:5:12: 203.0.113.10 can not be the next hop of VIPs: it is a VIP (line 7)"});
  CHECK(faults_of_bgp("next_hop_v6 = \"::\"") ==
        Faults{"h.toml:5:15: \"::\" is the unspecified address"});
  CHECK(faults_of_bgp("next_hop_v6 = \"fe80::1\"") ==
        Faults{"h.toml:5:15: \"fe80::1\" is a link-local address"});
  CHECK(faults_of_bgp("next_hop_v6 = \"192.0.2.5\"") ==
        Faults{"h.toml:5:15: \"next_hop_v6\" must be an IPv6 address, not \"192.0.2.5\""});
}

TEST_CASE("gobgpd is at a host and port, or at a socket") {
  for (const auto* target : {"localhost:50051", "192.0.2.5:1", "[2001:db8::5]:65535", "unix:/run/g",
                             "gobgp-1.example.org:50051"}) {
    INFO(target);
    CHECK(faults_of_bgp("gobgp = \"" + std::string{target} + '"').empty());
  }
  for (const auto* target :
       {"", "localhost", "localhost:", ":50051", "localhost:0", "a b:1", "localhost:65536",
        "2001:db8::5:50051", "[192.0.2.5]:1", "[]:1", "dns:///x:1", "http://x:1"}) {
    INFO(target);
    CHECK(faults_of_bgp("gobgp = \"" + std::string{target} + '"') ==
          Faults{"h.toml:5:9: \"gobgp\" must be \"HOST:PORT\" or \"unix:/PATH\", where gobgpd's "
                 "gRPC API listens, not \"" +
                 std::string{target} + '"'});
  }
  CHECK(faults_of_bgp("gobgp = \"unix:\"") ==
        Faults{"h.toml:5:9: \"gobgp\" must name a socket after \"unix:\""});
  CHECK(faults_of_bgp("gobgp = \"unix:/" + std::string(107, 'x') + '"').size() == 1);
  CHECK(faults_of_bgp("gobgp = \"unix:/" + std::string(106, 'x') + '"').empty());
}

TEST_CASE("a socket's path that gRPC would take for another one is refused") {
  for (const auto* path : {"/run/a%20b", "/run/a?b", "/run/a#b", "/run/a%2fb", "/run/a b", "/run/ä",
                           "//run/g", "/run/[g]"}) {
    INFO(path);
    CHECK(faults_of_bgp("gobgp = \"unix:" + std::string{path} + '"') ==
          Faults{"h.toml:5:9: the socket's path \"" + std::string{path} +
                 "\" is read as a URI: letters, digits and -._~!$&'()*+,;=:@ are possible between "
                 "single slashes"});
  }
  CHECK(faults_of_bgp("gobgp = \"unix:/run/a-b_c.d~1/x@y:z,(w)=+!$&'*;\"").empty());
}

TEST_CASE("only an external gobgpd is possible") {
  CHECK(faults_of_bgp("mode = \"managed\"") ==
        Faults{"h.toml:5:8: \"mode\" must be \"external\", not \"managed\""});
  CHECK(faults_of_bgp("as = 64512") == Faults{"h.toml:5:1: unknown key \"as\" in [bgp]"});
  CHECK(faults_of("bgp = 3\n").size() == 1);
}

TEST_CASE("a community has two parts of 16 bits, or a well-known name, and stands once") {
  CHECK(faults_of_vip("communities = [\"65535:0\", \"64512:65535\", \"no-export\"]").empty());
  for (const auto* text : {"", "1", "1:", ":1", "65536:0", "0:65536", "1:2:3", "-1:0", " 1:0",
                           "1:0 ", "0x1:0", "no_export", "NO-EXPORT", "blackhole"}) {
    INFO(text);
    CHECK(
        faults_of_vip("communities = [\"" + std::string{text} + "\"]") ==
        Faults{"h.toml:9:16: \"" + std::string{text} +
               "\" is not a community such as \"64512:100\", \"graceful-shutdown\", \"no-export\" "
               "or \"no-advertise\""});
  }
  CHECK(faults_of_vip("communities = [\"65535:0\", \"graceful-shutdown\"]") ==
        Faults{"h.toml:9:27: community \"graceful-shutdown\" is in the list already"});
  std::string many;
  for (int i = 0; i < 65; ++i) many += "\"1:" + std::to_string(i) + "\",";
  CHECK(faults_of_vip("communities = [" + many + "]") ==
        Faults{"h.toml:9:15: VIP 203.0.113.10 has 65 communities; at most 64 are possible"});
}

TEST_CASE("prepends and MED have ranges") {
  CHECK(faults_of_vip("prepend = 11") ==
        Faults{"h.toml:9:11: \"prepend\" must be 0 to 10, not 11"});
  CHECK(faults_of_vip("prepend = -1") ==
        Faults{"h.toml:9:11: \"prepend\" must be 0 to 10, not -1"});
  CHECK(faults_of_vip("med = 4294967296") ==
        Faults{"h.toml:9:7: \"med\" must be 0 to 4294967295, not 4294967296"});
  CHECK(faults_of_vip("med = 0\nprepend = 0").empty());
}

TEST_CASE("without [bgp] a key that says how to announce is a fault, because it would do nothing") {
  for (const auto* key :
       {"announce = true", "announce = false", "communities = []", "prepend = 0", "med = 0"}) {
    INFO(key);
    const std::string name{std::string_view{key}.substr(0, std::string_view{key}.find(' '))};
    const auto faults =
        faults_of("[[vip]]\naddress = \"203.0.113.10\"\n" + std::string{key} + "\n");
    REQUIRE(faults.size() == 1);
    CHECK(faults[0].find(": \"" + name +
                         "\" of VIP 203.0.113.10 does nothing without a section "
                         "[bgp]") != std::string::npos);
  }
}

TEST_CASE("how long a stopping daemon lingers is a bounded duration") {
  CHECK(parse("[control]\nlinger = \"0s\"\n").config.control.linger == 0s);
  CHECK(faults_of("[control]\nlinger = \"11m\"\n") ==
        Faults{"h.toml:5:10: \"linger\" must be 0s to 10m, not \"11m\""});
}

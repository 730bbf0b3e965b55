// SPDX-License-Identifier: Apache-2.0
#include "ctrl/announce/gobgp_requests.h"

#include "attribute.pb.h"
#include "ctrl/announce/gobgp_answers.h"
#include "tests/catch.h"

namespace holdfast::gobgp {
namespace {

IpAddress ip(std::string_view text) { return IpAddress::parse(text).value(); }

Announcement v4() { return {.vip = ip("203.0.113.10"), .next_hop = ip("192.0.2.1")}; }
Announcement v6() { return {.vip = ip("2001:db8:203::10"), .next_hop = ip("2001:db8::1")}; }

/// The request's path as gobgpd would list it.
std::vector<Announcement> listed(const Announcement& announcement, std::uint32_t own_as) {
  apipb::Destination destination;
  apipb::Path& path = *destination.add_paths();
  path = add_request(announcement, own_as).value().path();
  path.set_neighbor_ip("<nil>");
  std::string complaints;
  auto result =
      read_rib(destination,
               {.family = announcement.vip.family(), .vips = {announcement.vip}, .own_as = own_as},
               [&](Oddity oddity, const std::string&) { complaints += oddity_text(oddity); });
  CHECK(complaints.empty());
  return result;
}

TEST_CASE("an announcement comes back from the request that was made of it") {
  Announcement rich = v4();
  rich.communities = {0xffff0000, 0xffffff01};
  rich.med = 0;
  rich.prepend = 255;
  Announcement rich6 = v6();
  rich6.communities = {0xfc000007};
  rich6.med = 4294967295;
  rich6.prepend = 1;
  for (const Announcement& announcement : {v4(), v6(), rich, rich6})
    CHECK(listed(announcement, 4200000001) == std::vector{announcement});
}

TEST_CASE("a path names its family, its host route, an origin and a next hop of its family") {
  const auto request = add_request(v6(), 64512).value();
  CHECK(request.table_type() == apipb::GLOBAL);
  CHECK(request.path().family().afi() == apipb::Family::AFI_IP6);
  CHECK(request.path().family().safi() == apipb::Family::SAFI_UNICAST);
  CHECK(request.path().identifier() == 0);
  apipb::IPAddressPrefix prefix;
  REQUIRE(request.path().nlri().UnpackTo(&prefix));
  CHECK(prefix.prefix() == "2001:db8:203::10");
  CHECK(prefix.prefix_len() == 128);
  bool origin = false;
  apipb::MpReachNLRIAttribute reach;
  for (const auto& attribute : request.path().pattrs()) {
    origin = origin || attribute.Is<apipb::OriginAttribute>();
    attribute.UnpackTo(&reach);
  }
  CHECK(origin);
  REQUIRE(reach.next_hops_size() == 1);
  CHECK(reach.next_hops(0) == "2001:db8::1");
}

TEST_CASE("what a router would reject is not sent to gobgpd") {
  const auto refuses = [](const Announcement& announcement, std::uint32_t own_as = 64512) {
    return !add_request(announcement, own_as).has_value();
  };
  CHECK(refuses({.vip = ip("203.0.113.10"), .next_hop = ip("0.0.0.0")}));
  CHECK(refuses({.vip = ip("203.0.113.10"), .next_hop = ip("2001:db8::1")}));
  CHECK(refuses({.vip = ip("2001:db8::10"), .next_hop = ip("192.0.2.1")}));
  CHECK(refuses({.vip = ip("2001:db8::10"), .next_hop = ip("::")}));
  CHECK(refuses({.vip = ip("0.0.0.0"), .next_hop = ip("192.0.2.1")}));
  CHECK(refuses({.vip = ip("::"), .next_hop = ip("2001:db8::1")}));
  CHECK(refuses({.vip = ip("224.0.0.1"), .next_hop = ip("192.0.2.1")}));
  CHECK(refuses({.vip = ip("203.0.113.10"), .next_hop = ip("127.0.0.1")}));
  Announcement prepended = v4();
  prepended.prepend = 1;
  CHECK(refuses(prepended, 0));
  CHECK_FALSE(refuses(prepended));
  CHECK_FALSE(refuses(v4(), 0));
}

TEST_CASE("a deletion always has a path: without one gobgpd would delete all") {
  for (const char* vip : {"203.0.113.10", "2001:db8::10"}) {
    const auto request = delete_request(ip(vip)).value();
    CHECK(request.has_path());
    CHECK(request.path().is_withdraw());
    CHECK(request.uuid().empty());
    apipb::IPAddressPrefix prefix;
    REQUIRE(request.path().nlri().UnpackTo(&prefix));
    CHECK(prefix.prefix() == vip);
    CHECK(prefix.prefix_len() == (ip(vip).is_v4() ? 32 : 128));
    CHECK(request.path().family().afi() == request.family().afi());
  }
  CHECK_FALSE(delete_request(ip("0.0.0.0")).has_value());
  CHECK_FALSE(delete_request(ip("::")).has_value());
}

TEST_CASE("lists ask for prefixes with their length: a bare address is the longest match") {
  const auto rib = rib_request(Family::ipv6, {ip("2001:db8::10"), ip("2001:db8::11")});
  CHECK(rib.table_type() == apipb::GLOBAL);
  REQUIRE(rib.prefixes_size() == 2);
  CHECK(rib.prefixes(1).prefix() == "2001:db8::11/128");
  CHECK(rib.prefixes(1).type() == apipb::TableLookupPrefix::EXACT);
  const auto sent = sent_request(ip("192.0.2.254"), Family::ipv4, {ip("203.0.113.10")});
  CHECK(sent.table_type() == apipb::ADJ_OUT);
  CHECK(sent.name() == "192.0.2.254");
  CHECK(sent.prefixes(0).prefix() == "203.0.113.10/32");
}

}  // namespace
}  // namespace holdfast::gobgp

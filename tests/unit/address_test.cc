// SPDX-License-Identifier: Apache-2.0
#include "lib/net/address.h"

#include "tests/catch.h"

using namespace holdfast;

namespace {

IpAddress ip(std::string_view text) { return IpAddress::parse(text).value(); }
Prefix prefix(std::string_view text) { return Prefix::parse(text).value(); }

}  // namespace

TEST_CASE("addresses are read in their usual text forms and printed in the canonical one") {
  CHECK(ip("192.0.2.1").text() == "192.0.2.1");
  CHECK(ip("2001:DB8:0:0::0001").text() == "2001:db8::1");
  CHECK(ip("::").text() == "::");
  CHECK(ip("192.0.2.1").bytes()[0] == 192);
  CHECK(ip("192.0.2.1").bytes()[3] == 1);
  CHECK(ip("2001:db8::1").bytes()[15] == 1);
}

TEST_CASE("what is not exactly an address is refused") {
  for (const std::string_view text :
       {"", " ", "192.0.2", "192.0.2.256", "192.0.2.1 ", " 192.0.2.1", "192.0.2.1/32",
        "192.0.2.01x", "2001:db8:::1", "2001:db8::1%eth0", "fe80::1%2", "[2001:db8::1]",
        "localhost", "12345::", "1111:2222:3333:4444:5555:6666:7777:8888:9999"}) {
    CAPTURE(text);
    CHECK_FALSE(IpAddress::parse(text));
  }
  CHECK_FALSE(IpAddress::parse(std::string_view("192.0.2.1\0", 10)));
  CHECK_FALSE(IpAddress::parse(std::string(1000, '1')));
}

TEST_CASE("an IPv4-mapped IPv6 address is an IPv6 address and equals no IPv4 address") {
  const IpAddress mapped = ip("::ffff:192.0.2.1");
  CHECK(mapped.family() == Family::ipv6);
  CHECK(mapped != ip("192.0.2.1"));
  CHECK(std::hash<IpAddress>{}(mapped) != std::hash<IpAddress>{}(ip("192.0.2.1")));
}

TEST_CASE("the same leading bytes in both families are different addresses") {
  // c000:201:: begins with the bytes of 192.0.2.1 and has zeros behind.
  CHECK(ip("c000:201::") != ip("192.0.2.1"));
}

TEST_CASE("addresses are ordered: IPv4 before IPv6, then numerically") {
  CHECK(ip("9.0.0.0") < ip("10.0.0.0"));
  CHECK(ip("192.0.2.2") < ip("192.0.2.10"));
  CHECK(ip("255.255.255.255") < ip("::"));
  CHECK(ip("2001:db8::9") < ip("2001:db8::10"));
}

TEST_CASE("address classes that no client may have are recognised") {
  CHECK(ip("127.0.0.1").is_loopback());
  CHECK(ip("127.255.0.9").is_loopback());
  CHECK(ip("::1").is_loopback());
  CHECK_FALSE(ip("128.0.0.1").is_loopback());
  CHECK_FALSE(ip("::2").is_loopback());

  CHECK(ip("224.0.0.1").is_multicast());
  CHECK(ip("239.255.255.255").is_multicast());
  CHECK(ip("ff02::1").is_multicast());
  CHECK_FALSE(ip("223.255.255.255").is_multicast());
  CHECK_FALSE(ip("240.0.0.1").is_multicast());
  CHECK_FALSE(ip("fe80::1").is_multicast());

  CHECK(ip("240.0.0.1").is_reserved_v4());
  CHECK(ip("255.255.255.255").is_reserved_v4());
  CHECK_FALSE(ip("ff02::1").is_reserved_v4());

  CHECK(ip("0.0.0.0").is_unspecified());
  CHECK(ip("::").is_unspecified());
  CHECK_FALSE(ip("0.0.0.1").is_unspecified());

  CHECK(ip("169.254.1.1").is_link_local());
  CHECK(ip("fe80::1").is_link_local());
  CHECK(ip("febf::1").is_link_local());
  CHECK_FALSE(ip("fec0::1").is_link_local());
  CHECK_FALSE(ip("169.253.1.1").is_link_local());
}

TEST_CASE("MAC addresses are read and printed") {
  CHECK(MacAddress::parse("02:00:5e:10:00:Ff")->text() == "02:00:5e:10:00:ff");
  for (const std::string_view text :
       {"", "02:00:5e:10:00", "02:00:5e:10:00:1", "02-00-5e-10-00-01", "02:00:5e:10:00:0g",
        "02:00:5e:10:00:01:", "0x:00:5e:10:00:01", "+2:00:5e:10:00:01"}) {
    CAPTURE(text);
    CHECK_FALSE(MacAddress::parse(text));
  }
  CHECK(MacAddress{}.is_zero());
  CHECK_FALSE(MacAddress::parse("00:00:00:00:00:01")->is_zero());
}

TEST_CASE("a prefix holds the addresses of its own family that share its leading bits") {
  CHECK(prefix("192.0.2.0/24").contains(ip("192.0.2.255")));
  CHECK_FALSE(prefix("192.0.2.0/24").contains(ip("192.0.3.0")));
  CHECK(prefix("192.0.2.128/25").contains(ip("192.0.2.200")));
  CHECK_FALSE(prefix("192.0.2.128/25").contains(ip("192.0.2.127")));
  CHECK(prefix("0.0.0.0/0").contains(ip("203.0.113.9")));
  CHECK_FALSE(prefix("0.0.0.0/0").contains(ip("2001:db8::1")));
  CHECK(prefix("2001:db8::/33").contains(ip("2001:db8:7fff::1")));
  CHECK_FALSE(prefix("2001:db8::/33").contains(ip("2001:db8:8000::1")));
  CHECK(prefix("192.0.2.7").text() == "192.0.2.7/32");
  CHECK(prefix("2001:db8::7").text() == "2001:db8::7/128");
}

TEST_CASE("a prefix with host bits, a bad length or trailing text is refused") {
  for (const std::string_view text : {"192.0.2.1/24", "192.0.2.0/33", "192.0.2.0/", "192.0.2.0/-1",
                                      "192.0.2.0/24 ", "/24", "2001:db8::/129", "2001:db8::1/64"}) {
    CAPTURE(text);
    CHECK_FALSE(Prefix::parse(text));
  }
}

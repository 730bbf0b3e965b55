// SPDX-License-Identifier: Apache-2.0
#include "lib/net/endpoint.h"

#include "tests/catch.h"

using namespace holdfast;

TEST_CASE("an endpoint is an address, in brackets if it is IPv6, and a port") {
  const auto v4 = Endpoint::parse("192.0.2.1:443");
  REQUIRE(v4);
  CHECK(v4->address == IpAddress::parse("192.0.2.1"));
  CHECK(v4->port == 443);
  CHECK(v4->text() == "192.0.2.1:443");
  const auto v6 = Endpoint::parse("[2001:DB8:0::1]:65535");
  REQUIRE(v6);
  CHECK(v6->address == IpAddress::parse("2001:db8::1"));
  CHECK(v6->port == 65535);
  CHECK(v6->text() == "[2001:db8::1]:65535");
  CHECK(Endpoint::parse("192.0.2.1:0"));
}

TEST_CASE("what is not exactly an endpoint is refused") {
  for (const std::string_view text : {"",
                                      ":",
                                      "192.0.2.1",
                                      "192.0.2.1:",
                                      ":443",
                                      "192.0.2.1:65536",
                                      "192.0.2.1:-1",
                                      "192.0.2.1:+1",
                                      "192.0.2.1: 1",
                                      "192.0.2.1:1 ",
                                      "192.0.2.1:0x1",
                                      "192.0.2.1:01",
                                      "[192.0.2.1]:443",
                                      "2001:db8::1:443",
                                      "2001:db8::1",
                                      "[2001:db8::1]",
                                      "[2001:db8::1]443",
                                      "[2001:db8::1:443",
                                      "2001:db8::1]:443",
                                      "[]:443",
                                      "[[2001:db8::1]]:443",
                                      "example:443",
                                      "192.0.2.1:443:443"}) {
    CAPTURE(text);
    CHECK_FALSE(Endpoint::parse(text));
  }
}

// SPDX-License-Identifier: Apache-2.0
#include "lib/base/digits.h"

#include <cstdint>

#include "tests/catch.h"

using namespace holdfast;

namespace {

using Strings = std::initializer_list<std::string_view>;

}  // namespace

TEST_CASE("a decimal number is read whole, up to the greatest there is") {
  CHECK(parse_decimal<std::uint16_t>("0") == 0);
  CHECK(parse_decimal<std::uint16_t>("65535") == 65535);
  CHECK(parse_decimal<std::int64_t>("9223372036854775807") == INT64_MAX);
  CHECK(parse_decimal<std::uint64_t>("18446744073709551615") == UINT64_MAX);
  CHECK(parse_decimal<std::uint32_t>("1000", 1000) == 1000U);
}

TEST_CASE("leading zeros of a number change nothing") {
  CHECK(parse_decimal<std::uint16_t>("00080") == 80);
  CHECK(parse_decimal<std::uint8_t>("0000000000000000000000255") == 255);
  CHECK(parse_hex<std::uint8_t>("00ff") == 255);
}

TEST_CASE("what is more than digits is no number") {
  for (const auto text : Strings{"", "-", "+", "-1", "+1", "-0", "--1", " 1", "1 ", "1\n", "1.5",
                                 "1e3", "0x1", "1,000", "1_000", "a", "\xd9\xa1"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_decimal<std::uint16_t>(text));
    CHECK_FALSE(parse_decimal<std::uint64_t>(text));
    CHECK_FALSE(parse_decimal<std::int64_t>(text));
  }
  CHECK_FALSE(parse_decimal<std::uint16_t>(std::string_view{"1\0", 2}));
  CHECK_FALSE(parse_decimal<std::uint16_t>(std::string_view{}));
}

TEST_CASE("a number that is too great is refused, not cut") {
  CHECK_FALSE(parse_decimal<std::uint16_t>("65536"));
  CHECK_FALSE(parse_decimal<std::uint32_t>("4294967296"));
  CHECK_FALSE(parse_decimal<std::int64_t>("9223372036854775808"));
  CHECK_FALSE(parse_decimal<std::uint64_t>("18446744073709551616"));
  CHECK_FALSE(parse_decimal<std::uint64_t>("99999999999999999999999999999999999999"));
  CHECK_FALSE(parse_decimal<std::uint32_t>("1001", 1000));
  CHECK_FALSE(parse_decimal<std::uint32_t>("1", 0));
  CHECK_FALSE(parse_hex<std::uint8_t>("100"));
}

TEST_CASE("hexadecimal digits are of either case, without sign or prefix") {
  CHECK(parse_hex<std::uint8_t>("aF") == 0xaf);
  CHECK(parse_hex<std::uint64_t>("0123456789abcDEF") == 0x0123456789abcdefU);
  for (const auto text : Strings{"", "-1", "+1", "0x1", "g", "a g", "a ", " a"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_hex<std::uint64_t>(text));
    CHECK_FALSE(parse_hex<std::int32_t>(text));
  }
}

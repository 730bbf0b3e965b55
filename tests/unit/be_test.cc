// SPDX-License-Identifier: Apache-2.0
#include "lib/net/be.h"

#include <type_traits>

#include "tests/catch.h"

using namespace holdfast;

TEST_CASE("a big-endian number lies in memory with its high byte first") {
  const auto port = Be16::from_host(0x1234);
  const auto bytes = std::bit_cast<std::array<std::uint8_t, 2>>(port);
  CHECK(bytes == std::array<std::uint8_t, 2>{0x12, 0x34});
  const auto word = std::bit_cast<std::array<std::uint8_t, 4>>(Be32::from_host(0x01020304));
  CHECK(word == std::array<std::uint8_t, 4>{1, 2, 3, 4});
  const auto wide = std::bit_cast<std::array<std::uint8_t, 8>>(Be64::from_host(0x0102030405060708));
  CHECK(wide == std::array<std::uint8_t, 8>{1, 2, 3, 4, 5, 6, 7, 8});
}

TEST_CASE("host() gives back what from_host() took") {
  for (unsigned value = 0; value <= 0xffff; value += 251)
    REQUIRE(Be16::from_host(static_cast<std::uint16_t>(value)).host() == value);
  CHECK(Be32::from_host(0xdeadbeef).host() == 0xdeadbeef);
  CHECK(Be64::from_host(0xdeadbeef00c0ffee).host() == 0xdeadbeef00c0ffee);
}

TEST_CASE("big-endian numbers compare as numbers") {
  CHECK(Be16::from_host(0x00ff) < Be16::from_host(0x0100));
  CHECK(Be32::from_host(1) < Be32::from_host(0x01000000));
  CHECK(Be16::from_host(443) == Be16::from_host(443));
}

TEST_CASE("a host-order number can not slip into a wire-order place") {
  STATIC_REQUIRE_FALSE(std::is_convertible_v<std::uint16_t, Be16>);
  STATIC_REQUIRE_FALSE(std::is_convertible_v<Be16, std::uint16_t>);
  STATIC_REQUIRE(alignof(Be64) == 1);
  STATIC_REQUIRE(std::is_trivially_copyable_v<Be32>);
}

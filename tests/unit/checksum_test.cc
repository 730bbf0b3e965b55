// SPDX-License-Identifier: Apache-2.0
#include "lib/net/checksum.h"

#include <algorithm>
#include <random>
#include <vector>

#include "tests/catch.h"

using namespace holdfast;

namespace {

/// RFC 1071 section 4.1 written as plainly as it stands there: 16-bit words, high byte first.
std::uint16_t plain_checksum(std::span<const std::uint8_t> bytes) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < bytes.size(); i += 2) {
    const unsigned low = i + 1 < bytes.size() ? bytes[i + 1] : 0;
    sum += static_cast<unsigned>(bytes[i] << 8) | low;
    if (sum > 0xffff) sum = (sum & 0xffff) + 1;
  }
  return static_cast<std::uint16_t>(~sum);
}

std::vector<std::uint8_t> random_bytes(std::mt19937& random, std::size_t size) {
  std::vector<std::uint8_t> bytes(size);
  std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<std::uint8_t>(random()); });
  return bytes;
}

}  // namespace

TEST_CASE("the example of RFC 1071 section 3 has the sum that is printed there") {
  const std::array<std::uint8_t, 8> bytes{0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};
  CHECK(checksum_finish(checksum_add(bytes)).host() == static_cast<std::uint16_t>(~0xddf2u));
}

TEST_CASE("the checksum equals the plain algorithm for every length") {
  std::mt19937 random(1);
  for (std::size_t size = 0; size < 200; ++size) {
    const auto bytes = random_bytes(random, size);
    CAPTURE(size);
    REQUIRE(checksum_finish(checksum_add(bytes)).host() == plain_checksum(bytes));
  }
  const std::vector<std::uint8_t> ones(65535, 0xff);
  CHECK(checksum_finish(checksum_add(ones)).host() == plain_checksum(ones));
}

TEST_CASE("nothing at all has a sum of zero") { CHECK(checksum_add({}) == 0); }

TEST_CASE("sums of parts add up to the sum of the whole") {
  std::mt19937 random(2);
  const auto bytes = random_bytes(random, 96);
  const std::span all(bytes);
  CHECK(checksum_finish(checksum_add(all.subspan(40), checksum_add(all.first(40)))) ==
        checksum_finish(checksum_add(all)));
}

TEST_CASE("the checksum of an IPv4 header of the literature") {
  // 45 00 00 73 00 00 40 00 40 11 b8 61 c0 a8 00 01 c0 a8 00 c7
  Ipv4Header header{.version_ihl = 0x45,
                    .type_of_service = 0,
                    .total_length = Be16::from_host(0x73),
                    .identification = {},
                    .flags_fragment_offset = Be16::from_host(0x4000),
                    .time_to_live = 64,
                    .protocol = IpProtocol::udp,
                    .header_checksum = Be16::from_host(0xffff),
                    .source = Be32::from_host(0xc0a80001),
                    .destination = Be32::from_host(0xc0a800c7)};
  CHECK(ipv4_header_checksum(header).host() == 0xb861);
}

TEST_CASE("the checksum of any IPv4 header equals the plain algorithm over its bytes") {
  std::mt19937 random(5);
  for (int round = 0; round < 2000; ++round) {
    auto bytes = random_bytes(random, sizeof(Ipv4Header));
    Ipv4Header header;
    std::memcpy(&header, bytes.data(), sizeof header);
    bytes[10] = bytes[11] = 0;
    REQUIRE(ipv4_header_checksum(header).host() == plain_checksum(bytes));
  }
}

TEST_CASE("an incremental update equals a full computation") {
  std::mt19937 random(3);
  for (int round = 0; round < 20000; ++round) {
    auto bytes = random_bytes(random, 20);
    bytes[0] |= 1;  // not all zero
    const Be16 full_before = checksum_finish(checksum_add(bytes));
    const std::size_t at = 2 * (random() % 10);
    Be16 before;
    std::memcpy(&before, &bytes[at], 2);
    // The corner values of ones' complement are the ones that go wrong.
    const std::uint16_t corner[]{0x0000, 0xffff, static_cast<std::uint16_t>(random())};
    const Be16 after = Be16::from_host(corner[random() % 3]);
    std::memcpy(&bytes[at], &after, 2);
    CAPTURE(round, at, before.host(), after.host());
    REQUIRE(checksum_update(full_before, before, after) == checksum_finish(checksum_add(bytes)));
  }
}

TEST_CASE("a TCP segment whose checksum was filled in sums to zero with its pseudo header") {
  std::mt19937 random(4);
  for (const auto& [source, destination] :
       {std::pair{"192.0.2.1", "203.0.113.10"}, std::pair{"2001:db8::1", "2001:db8::2"}}) {
    auto segment = random_bytes(random, 33);
    segment[16] = segment[17] = 0;
    const auto pseudo = pseudo_header_sum(*IpAddress::parse(source), *IpAddress::parse(destination),
                                          IpProtocol::tcp, 33);
    const Be16 checksum = checksum_finish(checksum_add(segment, pseudo));
    std::memcpy(&segment[16], &checksum, 2);
    CHECK(checksum_fold(checksum_add(segment, pseudo)) == 0xffff);
  }
}

TEST_CASE("the pseudo header is the RFC's: addresses, zero, protocol, length") {
  // RFC 768 / RFC 9293: src, dst, zero, protocol, 16-bit length.
  const std::vector<std::uint8_t> v4{192, 0, 2, 1, 203, 0, 113, 10, 0, 17, 0, 8};
  CHECK(checksum_finish(pseudo_header_sum(*IpAddress::parse("192.0.2.1"),
                                          *IpAddress::parse("203.0.113.10"), IpProtocol::udp, 8))
            .host() == plain_checksum(v4));
}

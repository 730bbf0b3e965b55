// SPDX-License-Identifier: Apache-2.0
// Placement version 1, frozen. A vector that fails here means that a fleet would move every flow at
// once: change the code back, not the vectors.
#include "lib/flow/flow_key.h"

#include <algorithm>
#include <random>

#include "tests/catch.h"

using namespace holdfast;

namespace {

FlowKey key(std::string_view source, std::string_view destination, unsigned source_port,
            unsigned destination_port, unsigned protocol) {
  return FlowKey(IpAddress::parse(source).value(), IpAddress::parse(destination).value(),
                 Be16::from_host(static_cast<std::uint16_t>(source_port)),
                 Be16::from_host(static_cast<std::uint16_t>(destination_port)),
                 static_cast<IpProtocol>(protocol));
}

struct Vector {
  const char* source;
  const char* destination;
  unsigned source_port;
  unsigned destination_port;
  unsigned protocol;
  std::uint64_t seed;
  std::uint64_t low64;
  std::uint64_t high64;
  std::uint32_t slot_of_65537;
  std::uint32_t slot_of_655373;
  std::uint32_t entropy;
  std::uint64_t tag;
  std::uint64_t bucket_bits;
};

// Computed by a program of its own, written from the XXH3 specification (xxHash's
// doc/xxhash_spec.md), not by this code nor by libxxhash.
constexpr Vector kVectors[]{
    {"198.51.100.7", "203.0.113.10", 40000, 443, 6, 0x0123456789abcdef, 0x960a6b396599bf18,
     0x6977b92f0739de0b, 38411, 384111, 0x6599bf18, 0x1a5dee4bc1c, 0xe7782f39659},
    {"198.51.100.7", "203.0.113.10", 40000, 443, 17, 0x0123456789abcdef, 0x69638a22e2d7ccd2,
     0x9d757ef0ffcafc97, 26979, 269800, 0xe2d7ccd2, 0x275d5fbc3ff, 0x2bf25e22e2d},
    {"0.0.0.0", "0.0.0.0", 0, 0, 0, 0, 0x22fb57a9a0a9ff6b, 0x8804b1c74117dca7, 8955, 89555,
     0xa0a9ff6b, 0x22012c71d04, 0x5f729fa9a0a},
    {"255.255.255.255", "255.255.255.255", 65535, 65535, 255, 0xffffffffffffffff,
     0xf39d0abe9b85f15d, 0xfe0b9461f1398c6a, 62365, 623662, 0x9b85f15d, 0x3f82e5187c4,
     0xe631aabe9b8},
    {"2001:db8:51::7", "2001:db8::10", 40000, 443, 6, 0x0123456789abcdef, 0x3a98a9a53765af32,
     0x4e8c2e2bb280ae8f, 15000, 150009, 0x3765af32, 0x13a30b8aeca, 0x2ba3da5376},
    {"2001:db8:51::7", "2001:db8::10", 40000, 443, 17, 0x0123456789abcdef, 0x5245abec214a71a0,
     0xbe90b646e072e0f1, 21061, 210620, 0x214a71a0, 0x2fa42d91b81, 0xcb83c7ec214},
    {"::", "::", 0, 0, 0, 0, 0xd02fa372aef37ad7, 0x459c3747b68e30ca, 53296, 532966, 0xaef37ad7,
     0x11670dd1eda, 0x38c32b72aef},
    {"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 65535,
     65535, 255, 0xffffffffffffffff, 0x86cbf45368596e57, 0x3dc0c820bc51486c, 34508, 345086,
     0x68596e57, 0xf7032082f1, 0x4521b053685},
};

}  // namespace

TEST_CASE("placement version 1 is what it was") {
  for (const Vector& v : kVectors) {
    CAPTURE(v.source, v.protocol);
    const FlowHash hash = hash_flow(
        key(v.source, v.destination, v.source_port, v.destination_port, v.protocol), {v.seed});
    CHECK(hash.low64 == v.low64);
    CHECK(hash.high64 == v.high64);
    CHECK(maglev_slot(hash, 65537) == v.slot_of_65537);
    CHECK(maglev_slot(hash, 655373) == v.slot_of_655373);
    CHECK(flow_entropy(hash) == v.entropy);
    CHECK(flow_tag(hash) == v.tag);
    CHECK(flow_bucket_bits(hash) == v.bucket_bits);
  }
}

TEST_CASE("a flow key is source, destination, ports and protocol in wire order") {
  const FlowKey v4 = key("198.51.100.7", "203.0.113.10", 0x1234, 443, 6);
  const std::vector<std::uint8_t> expected{198, 51, 100, 7, 203, 0, 113, 10, 0x12, 0x34, 1, 187, 6};
  CHECK(std::ranges::equal(v4.bytes(), expected));

  const FlowKey v6 = key("2001:db8::1", "2001:db8::2", 0x1234, 443, 17);
  REQUIRE(v6.bytes().size() == 37);
  CHECK(v6.bytes()[0] == 0x20);
  CHECK(v6.bytes()[15] == 1);
  CHECK(v6.bytes()[31] == 2);
  CHECK(v6.bytes()[32] == 0x12);
  CHECK(v6.bytes()[35] == 187);
  CHECK(v6.bytes()[36] == 17);
}

TEST_CASE("each part of a flow key and the seed change the hash") {
  const FlowHash hash = hash_flow(key("198.51.100.7", "203.0.113.10", 40000, 443, 6), {1});
  CHECK(hash_flow(key("198.51.100.8", "203.0.113.10", 40000, 443, 6), {1}) != hash);
  CHECK(hash_flow(key("198.51.100.7", "203.0.113.11", 40000, 443, 6), {1}) != hash);
  CHECK(hash_flow(key("198.51.100.7", "203.0.113.10", 40001, 443, 6), {1}) != hash);
  CHECK(hash_flow(key("198.51.100.7", "203.0.113.10", 40000, 444, 6), {1}) != hash);
  CHECK(hash_flow(key("198.51.100.7", "203.0.113.10", 40000, 443, 17), {1}) != hash);
  CHECK(hash_flow(key("198.51.100.7", "203.0.113.10", 40000, 443, 6), {2}) != hash);
  CHECK(hash_flow(key("198.51.100.7", "203.0.113.10", 443, 40000, 6), {1}) != hash);
}

TEST_CASE("flows spread evenly over slots") {
  constexpr std::uint32_t kSlots = 97;
  std::vector<int> hits(kSlots);
  for (unsigned port = 0; port < 65536; ++port)
    ++hits[maglev_slot(hash_flow(key("198.51.100.7", "203.0.113.10", port, 443, 6), {7}), kSlots)];
  // 676 expected, standard deviation 26: 6 sigma.
  CHECK(*std::ranges::min_element(hits) > 676 - 6 * 26);
  CHECK(*std::ranges::max_element(hits) < 676 + 6 * 26);
}

TEST_CASE("a slot is always inside the table") {
  CHECK(maglev_slot({.low64 = ~std::uint64_t{0}, .high64 = 0}, 65537) == 65536);
  CHECK(maglev_slot({.low64 = 0, .high64 = ~std::uint64_t{0}}, 65537) == 0);
  CHECK(maglev_slot({.low64 = ~std::uint64_t{0}, .high64 = 0}, 1) == 0);
}

TEST_CASE("a seed's fingerprint tells seeds apart and is not a part of the seed") {
  const std::string fingerprint = seed_fingerprint({0x0123456789abcdef});
  CHECK(fingerprint.size() == 8);
  CHECK(fingerprint == seed_fingerprint({0x0123456789abcdef}));
  CHECK(fingerprint != seed_fingerprint({0x0123456789abcdee}));
  CHECK(std::string_view("0123456789abcdef").find(fingerprint) == std::string_view::npos);
}

// SPDX-License-Identifier: Apache-2.0
// One IPv4 packet in fragments (RFC 791 3.2). What comes out is put together again by the rules of
// the RFC, written here a second time.
#include "lib/net/ipv4_fragmenter.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <random>

#include "tests/catch.h"
#include "tests/dsl/packet.h"

using namespace holdfast;
using namespace holdfast::dsl;

namespace {

constexpr std::size_t kAnyRoom = 65535;

std::size_t header_of(const Bytes& packet) { return (packet[0] & 0xfu) * 4u; }
unsigned word(const Bytes& packet, std::size_t at) { return packet[at] * 256u + packet[at + 1]; }
unsigned offset_of(const Bytes& packet) { return (word(packet, 6) & 0x1fff) * 8; }
bool has_more(const Bytes& packet) { return (word(packet, 6) & 0x2000) != 0; }

std::vector<Bytes> fragments_of(const Bytes& packet, Ipv4Fragmenter::Room room) {
  const Ipv4Fragmenter fragmenter(packet.data(), room);
  std::vector<Bytes> fragments;
  for (unsigned i = 0; i < fragmenter.count(); ++i) {
    const auto part = fragmenter.part(i);
    Bytes fragment(fragmenter.header_length(i));
    fragmenter.write_header(i, fragment.data());
    const auto payload =
        packet.begin() + static_cast<std::ptrdiff_t>(header_of(packet) + part.offset);
    fragment.insert(fragment.end(), payload, payload + static_cast<std::ptrdiff_t>(part.length));
    fragments.push_back(std::move(fragment));
  }
  return fragments;
}
std::vector<Bytes> fragments_of(const Packet& packet, std::size_t room) {
  return fragments_of(packet.bytes(), {.first = room, .later = room});
}

/// Payload and flags of what fragments were made of, by their offsets and lengths alone.
struct Whole {
  unsigned begins = 0;
  bool more = false;
  Bytes payload{};
};
Whole put_together(const std::vector<Bytes>& fragments) {
  std::map<unsigned, const Bytes*> in_order;
  for (const Bytes& fragment : fragments) {
    REQUIRE(word(fragment, 2) == fragment.size());
    REQUIRE(in_order.emplace(offset_of(fragment), &fragment).second);
  }
  Whole whole{.begins = in_order.begin()->first, .more = has_more(*in_order.rbegin()->second)};
  for (const auto& [offset, fragment] : in_order) {
    REQUIRE(offset == whole.begins + whole.payload.size());
    const auto payload = fragment->begin() + static_cast<std::ptrdiff_t>(header_of(*fragment));
    whole.payload.insert(whole.payload.end(), payload, fragment->end());
  }
  return whole;
}

bool checksum_is_good(const Bytes& packet) {
  unsigned sum = 0;
  for (std::size_t i = 0; i < header_of(packet); i += 2) sum += word(packet, i);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return sum == 0xffff;
}

Bytes payload_of(const Packet& packet) {
  const Bytes bytes = packet.bytes();
  return {bytes.begin() + static_cast<std::ptrdiff_t>(header_of(bytes)), bytes.end()};
}

}  // namespace

TEST_CASE("a packet of 1500 bytes becomes two fragments where 1480 fit") {
  const Packet packet = Ip4{.dscp = 9, .ecn = 1, .ttl = 17, .id = 77, .df = false} /
                        Udp{.dport = 443} / payload(1472);
  const auto fragments = fragments_of(packet, 1480);
  REQUIRE(fragments.size() == 2);
  const Bytes rest = payload_of(packet);
  const Bytes front(rest.begin(), rest.begin() + 1456);
  const Bytes back(rest.begin() + 1456, rest.end());
  const Ip4 first{.dscp = 9,
                  .ecn = 1,
                  .ttl = 17,
                  .id = 77,
                  .df = false,
                  .more_fragments = true,
                  .protocol = 17};
  Ip4 second = first;
  second.more_fragments = false;
  second.fragment_offset = 182;
  CHECK(fragments[0] == (first / Raw{front}).bytes());
  CHECK(fragments[1] == (second / Raw{back}).bytes());
}

TEST_CASE("what fits stays one packet, as it was") {
  const Packet packet = Ip4{.df = false} / Udp{} / payload(100);
  const auto fragments = fragments_of(packet, 128);
  REQUIRE(fragments.size() == 1);
  CHECK(fragments[0] == packet.bytes());
}

TEST_CASE("fragments of every size hold the packet, its flags and a good checksum") {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    const bool was_fragment = random() % 2 == 0;
    Ip4 ip{.id = static_cast<std::uint16_t>(random()),
           .df = false,
           .more_fragments = was_fragment && random() % 2 == 0,
           .reserved_flag = random() % 16 == 0,
           .fragment_offset = static_cast<std::uint16_t>(was_fragment ? random() % 4000 : 0),
           .options = Bytes(random() % 11 * 4, 1),
           .protocol = 17};
    const std::size_t length = (random() % 600 + 1) * (ip.more_fragments ? 8 : 1);
    const Packet packet = ip / payload(length);
    const Ipv4Fragmenter::Room room{.first = 68 + random() % 1500, .later = 68 + random() % 1500};
    CAPTURE(length, room.first, room.later);
    const auto fragments = fragments_of(packet.bytes(), room);
    REQUIRE(!fragments.empty());
    for (std::size_t i = 0; i < fragments.size(); ++i) {
      REQUIRE(fragments[i].size() <= (i == 0 ? room.first : room.later));
      REQUIRE(checksum_is_good(fragments[i]));
      REQUIRE((word(fragments[i], 6) & 0xc000) == (ip.reserved_flag ? 0x8000u : 0u));
      // All but the last one must end where another can begin.
      if (i + 1 < fragments.size())
        REQUIRE((fragments[i].size() - header_of(fragments[i])) % 8 == 0);
    }
    const Whole whole = put_together(fragments);
    REQUIRE(whole.begins == ip.fragment_offset * 8u);
    REQUIRE(whole.more == ip.more_fragments);
    REQUIRE(whole.payload == payload_of(packet));
  }
}

TEST_CASE("options that RFC 791 wants in every fragment are in every one, others in the first") {
  const Bytes record_route{7, 7, 4, 0, 0, 0, 0};
  const Bytes security{0x82, 6, 1, 2, 3, 4};
  const Bytes stream{0x88, 4, 9, 9};
  Bytes options = record_route;
  options.push_back(1);
  options.insert(options.end(), security.begin(), security.end());
  options.push_back(1);
  options.push_back(1);
  options.insert(options.end(), stream.begin(), stream.end());
  const Packet packet = Ip4{.df = false, .options = options, .protocol = 17} / payload(1000);
  const auto fragments = fragments_of(packet, 400);
  REQUIRE(fragments.size() == 3);
  const auto options_of = [](const Bytes& fragment) {
    return Bytes(fragment.begin() + 20,
                 fragment.begin() + static_cast<std::ptrdiff_t>(header_of(fragment)));
  };
  CHECK(options_of(fragments[0]) == options);
  // Ten bytes of them, filled up to twelve.
  const Bytes copied{0x82, 6, 1, 2, 3, 4, 0x88, 4, 9, 9, 0, 0};
  CHECK(options_of(fragments[1]) == copied);
  CHECK(options_of(fragments[2]) == copied);
  CHECK(put_together(fragments).payload == payload_of(packet));
}

TEST_CASE("malformed options end what is copied, and are never read beyond") {
  for (const Bytes& options :
       {Bytes{0x83, 0, 0, 0}, Bytes{0x83, 1, 0, 0}, Bytes{0x83, 5, 0, 0}, Bytes{1, 1, 1, 0x83},
        Bytes{0x83, 255, 0, 0}, Bytes{0, 0x83, 3, 4}}) {
    const Packet packet = Ip4{.df = false, .options = options, .protocol = 17} / payload(1000);
    const auto fragments = fragments_of(packet, 400);
    REQUIRE(fragments.size() == 3);
    CHECK(header_of(fragments[0]) == 24);
    CHECK(header_of(fragments[1]) == 20);
    CHECK(put_together(fragments).payload == payload_of(packet));
  }
}

TEST_CASE("a fragment is fragmented further, and more follow the last piece of one in the middle") {
  const Packet middle =
      Ip4{.id = 5, .df = false, .more_fragments = true, .fragment_offset = 185, .protocol = 17} /
      payload(1480);
  const auto fragments = fragments_of(middle, 1000);
  REQUIRE(fragments.size() == 2);
  CHECK(offset_of(fragments[0]) == 1480);
  CHECK(has_more(fragments[0]));
  CHECK(offset_of(fragments[1]) == 1480 + 976);
  CHECK(has_more(fragments[1]));

  const Packet last =
      Ip4{.id = 5, .df = false, .fragment_offset = 185, .protocol = 17} / payload(1480);
  const auto ends = fragments_of(last, 1000);
  REQUIRE(ends.size() == 2);
  CHECK(has_more(ends[0]));
  CHECK_FALSE(has_more(ends[1]));
}

TEST_CASE("where a header and eight bytes find no room nothing is fragmented") {
  const Bytes packet =
      (Ip4{.df = false, .options = Bytes(40, 1), .protocol = 17} / payload(1000)).bytes();
  CHECK(Ipv4Fragmenter(packet.data(), {.first = 67, .later = kAnyRoom}).count() == 0);
  CHECK(Ipv4Fragmenter(packet.data(), {.first = 0, .later = kAnyRoom}).count() == 0);
  CHECK(Ipv4Fragmenter(packet.data(), {.first = 68, .later = 27}).count() == 0);
  // Options that are not copied leave 20 bytes of header to the later ones.
  CHECK(Ipv4Fragmenter(packet.data(), {.first = 68, .later = 28}).count() == 125);
}

TEST_CASE("a fragment that ends beyond 65535 bytes is not fragmented, since no offset says where") {
  const auto count = [](std::uint16_t offset, std::size_t length) {
    const Bytes packet =
        (Ip4{.df = false, .fragment_offset = offset, .protocol = 17} / payload(length)).bytes();
    return Ipv4Fragmenter(packet.data(), {.first = 576, .later = 576}).count();
  };
  CHECK(count(8000, 1535) == 3);
  CHECK(count(8000, 1536) == 0);
  CHECK(count(8191, 1000) == 0);
}

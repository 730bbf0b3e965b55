// SPDX-License-Identifier: Apache-2.0
#include "lib/net/mss.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "lib/net/checksum.h"
#include "tests/catch.h"

using namespace holdfast;

namespace {

using Bytes = std::vector<std::uint8_t>;

/// A TCP segment whose sum over all bytes (no pseudo header: it does not change) is 0xffff.
Bytes segment(Bytes options, std::size_t payload = 7) {
  options.resize((options.size() + 3) / 4 * 4);
  Bytes bytes(20 + options.size() + payload, 0x5a);
  std::copy(options.begin(), options.end(), bytes.begin() + 20);
  bytes[12] = static_cast<std::uint8_t>((20 + options.size()) / 4 << 4);
  bytes[13] = 0x02;
  bytes[16] = bytes[17] = 0;
  const Be16 checksum = checksum_finish(checksum_add(bytes));
  std::memcpy(bytes.data() + 16, &checksum, 2);
  return bytes;
}

bool adds_up(const Bytes& bytes) { return checksum_fold(checksum_add(bytes)) == 0xffff; }

/// Lowers the MSS of a segment with these options; the options as they are then.
Bytes clamped(const Bytes& options, std::uint16_t most) {
  Bytes bytes = segment(options);
  const Bytes before = bytes;
  const bool changed = clamp_mss(bytes, most);
  CHECK(changed == (bytes != before));
  CHECK(adds_up(bytes));
  return {bytes.begin() + 20, bytes.begin() + 20 + static_cast<std::ptrdiff_t>(options.size())};
}

}  // namespace

TEST_CASE("an MSS above the clamp is lowered to it, one at or below it stays") {
  CHECK(clamped({2, 4, 0x05, 0xb4}, 1400) == Bytes{2, 4, 0x05, 0x78});
  CHECK(clamped({2, 4, 0x05, 0x78}, 1400) == Bytes{2, 4, 0x05, 0x78});
  CHECK(clamped({2, 4, 0x05, 0x77}, 1400) == Bytes{2, 4, 0x05, 0x77});
  CHECK(clamped({2, 4, 0xff, 0xff}, 536) == Bytes{2, 4, 0x02, 0x18});
  CHECK(clamped({2, 4, 0x00, 0x00}, 536) == Bytes{2, 4, 0x00, 0x00});
}

TEST_CASE("the MSS is found among other options, at even and at odd places") {
  // Window scale, SACK permitted, timestamps: what Linux, Windows and others send, in their orders.
  CHECK(clamped({2, 4, 5, 0xb4, 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 3, 3, 7}, 1000) ==
        Bytes{2, 4, 3, 0xe8, 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 3, 3, 7});
  CHECK(clamped({1, 3, 3, 7, 1, 2, 4, 5, 0xb4, 4, 2, 0}, 1000) ==
        Bytes{1, 3, 3, 7, 1, 2, 4, 3, 0xe8, 4, 2, 0});
  CHECK(clamped({1, 2, 4, 5, 0xb4, 0, 0, 0}, 1000) == Bytes{1, 2, 4, 3, 0xe8, 0, 0, 0});
}

TEST_CASE("options without an MSS, or behind their end, are left alone") {
  for (const Bytes& options : {Bytes{}, Bytes{1, 1, 1, 1}, Bytes{3, 3, 7, 0}, Bytes{4, 2, 1, 1},
                               Bytes{0, 1, 1, 1, 2, 4, 5, 0xb4}})
    CHECK(clamped(options, 536) == options);
}

TEST_CASE("options that do not add up leave the packet as it is") {
  for (const Bytes& options :
       {Bytes{2, 3, 5, 0}, Bytes{2, 5, 5, 0xb4, 0, 0, 0, 0}, Bytes{1, 1, 2, 4}, Bytes{1, 1, 1, 2},
        Bytes{3, 0, 2, 4, 5, 0xb4, 0, 0}, Bytes{3, 1, 2, 4, 5, 0xb4, 0, 0},
        Bytes{3, 9, 2, 4, 5, 0xb4, 0, 0}, Bytes{2, 4, 5, 0xb4, 3, 60, 1, 1},
        Bytes{2, 4, 5, 0xb4, 2, 4, 5, 0xb4}})
    CHECK(clamped(options, 536) == options);
}

TEST_CASE("a header that is not all there, or has no good length, is left alone") {
  const Bytes whole = segment({2, 4, 5, 0xb4, 1, 1, 1, 1}, 0);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    const Bytes before = cut;
    CAPTURE(size);
    CHECK_FALSE(clamp_mss(cut, 536));
    CHECK(cut == before);
  }
  Bytes small_offset = whole;
  small_offset[12] = 0x40;
  CHECK_FALSE(clamp_mss(small_offset, 536));
  Bytes complete = whole;
  CHECK(clamp_mss(complete, 536));
}

TEST_CASE(
    "whatever the options are, only an MSS and the checksum change, and the sum stays right") {
  std::mt19937 random(1);
  int lowered = 0;
  for (int round = 0; round < 200'000; ++round) {
    Bytes options(random() % 41);
    // Mostly small numbers: those are kinds and lengths.
    for (auto& byte : options)
      byte = static_cast<std::uint8_t>(random() % (random() % 4 ? 6 : 256));
    const Bytes before = segment(options, random() % 9);
    Bytes after = before;
    const auto most = static_cast<std::uint16_t>(536 + random() % 1500);
    if (!clamp_mss(after, most)) {
      REQUIRE(after == before);
      continue;
    }
    ++lowered;
    REQUIRE(adds_up(after));
    std::vector<std::size_t> changed;
    for (std::size_t i = 20; i < after.size(); ++i)
      if (after[i] != before[i]) changed.push_back(i);
    REQUIRE(!changed.empty());
    REQUIRE(changed.back() - changed.front() <= 1);
  }
  CHECK(lowered > 100);
}

// SPDX-License-Identifier: Apache-2.0
// Chains of buffers: gathering their heads and cutting their ends, with every buffer given back
// once.
#include "lb/segments.h"

#include <algorithm>

#include "tests/catch.h"
#include "tests/dsl/test_io.h"

namespace holdfast {
namespace {

using dsl::Bytes;

Bytes counting(std::size_t size) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::uint8_t>(i * 7 + i / 256);
  return bytes;
}

Bytes first(const Bytes& bytes, std::size_t size) {
  return {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)};
}

/// One packet of a worker; what is left of it goes back to the port at the end.
class Held {
 public:
  Held(const Bytes& bytes, const dsl::MbufShape& shape) {
    io.push(bytes, shape);
    REQUIRE(io.receive({&mbuf, 1}) == 1);
  }
  ~Held() { io.free({&mbuf, 1}); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  /// The chain as its bytes, and nothing in it contradicts itself.
  [[nodiscard]] Bytes bytes() const {
    std::size_t count = 0;
    std::size_t sum = 0;
    for (const rte_mbuf* at = mbuf; at != nullptr; at = at->next) {
      ++count;
      sum += at->data_len;
      CHECK(at->data_len > 0);
    }
    CHECK(mbuf->nb_segs == count);
    CHECK(mbuf->pkt_len == sum);
    return dsl::bytes_of(*mbuf);
  }

  dsl::TestIo io;
  rte_mbuf* mbuf = nullptr;
};

constexpr std::uint16_t kRoom = 3712;  // of the daemon's buffers

TEST_CASE("segments: what fits into the first buffer is gathered there, wherever it was split") {
  const Bytes all = counting(200);
  for (std::size_t split = 0; split < all.size(); ++split)
    for (const std::size_t others : {std::size_t{1}, std::size_t{7}, std::size_t{200}}) {
      Held held(all, {.tailroom = kRoom, .first_segment = split, .other_segments = others});
      REQUIRE(gather_head(*held.mbuf, held.io));
      CHECK(held.mbuf->nb_segs == 1);
      CHECK(held.bytes() == all);
    }
}

TEST_CASE("segments: of a longer packet at least the head is gathered, byte by byte the same") {
  const Bytes all = counting(9000);
  for (const std::size_t split : {0u, 1u, 14u, 1000u, 1535u, 1536u, 2048u, 3712u}) {
    Held held(all, {.tailroom = static_cast<std::uint16_t>(kRoom - split),
                    .first_segment = split,
                    .other_segments = 100});
    REQUIRE(gather_head(*held.mbuf, held.io));
    CHECK(held.mbuf->data_len == std::max(split, kHead));
    CHECK(held.bytes() == all);
  }
}

TEST_CASE("segments: a first buffer without room is left alone") {
  const Bytes all = counting(2000);
  Held small(all, {.first_segment = 1000});
  CHECK_FALSE(gather_head(*small.mbuf, small.io));
  CHECK(small.bytes() == all);
  CHECK(small.mbuf->nb_segs == 2);
  // It has the whole head already.
  Held enough(all, {.first_segment = 1536});
  CHECK(gather_head(*enough.mbuf, enough.io));
  CHECK(enough.bytes() == all);
  CHECK(enough.mbuf->nb_segs == 2);
}

TEST_CASE("segments: a first buffer that others use too is not written to") {
  const Bytes all = counting(200);
  Held held(all, {.tailroom = kRoom, .first_segment = 100});
  held.mbuf->refcnt = 2;
  CHECK_FALSE(gather_head(*held.mbuf, held.io));
  held.mbuf->refcnt = 1;
  CHECK(held.bytes() == all);
}

TEST_CASE("segments: a chain is cut at any byte, and the buffers behind are given back") {
  const Bytes all = counting(100);
  for (std::uint32_t length = 1; length <= 100; ++length)
    for (const std::size_t others : {1u, 7u, 30u}) {
      Held held(all, {.first_segment = 20, .other_segments = others});
      cut_to(*held.mbuf, length, held.io);
      CHECK(held.bytes() == first(all, length));
    }
}

}  // namespace
}  // namespace holdfast

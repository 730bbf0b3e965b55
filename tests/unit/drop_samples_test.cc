// SPDX-License-Identifier: Apache-2.0
// The latest dropped packet of each reason: what is kept of it, how often, and that a reader never
// sees a mixture of two.
#include "lb/drop_samples.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "tests/catch.h"
#include "tests/dsl/mbuf.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using Bytes = std::vector<std::uint8_t>;

constexpr Instant kStart = 1h;

/// `size` bytes that count up from `first`.
Bytes counting(std::size_t size, unsigned first = 0) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::uint8_t>(first + i);
  return bytes;
}

/// A heap buffer chain that is freed at the end.
class Frame {
 public:
  explicit Frame(const Bytes& bytes, const dsl::MbufShape& shape = {})
      : mbuf_(dsl::make_mbuf(bytes, shape)) {}
  ~Frame() { dsl::free_mbuf(mbuf_); }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;
  [[nodiscard]] rte_mbuf& operator*() const { return *mbuf_; }

 private:
  rte_mbuf* mbuf_;
};

Bytes head_of(const DropSample& sample) {
  return {sample.head.begin(), sample.head.begin() + static_cast<std::ptrdiff_t>(sample.kept())};
}

TEST_CASE("drop samples: of each reason the first bytes, the length and the time are kept") {
  DropSamples samples;
  const Bytes longer = counting(1514);
  const Bytes shorter = counting(60, 7);
  samples.take(DropReason::unknown_port, *Frame(longer), kStart);
  samples.take(DropReason::too_big, *Frame(shorter), kStart + 5ns);

  const auto one = samples.read(DropReason::unknown_port).value();
  CHECK(one.reason == DropReason::unknown_port);
  CHECK(one.at == kStart);
  CHECK(one.length == 1514);
  CHECK(head_of(one) == counting(64));
  const auto other = samples.read(DropReason::too_big).value();
  CHECK(other.at == kStart + 5ns);
  CHECK(other.length == 60);
  CHECK(head_of(other) == shorter);
  CHECK_FALSE(samples.read(DropReason::l2_truncated));
}

TEST_CASE("drop samples: a frame may be empty, or spread over buffers") {
  DropSamples samples;
  samples.take(DropReason::l2_truncated, *Frame(Bytes{}), kStart);
  CHECK(samples.read(DropReason::l2_truncated)->length == 0);
  CHECK(head_of(*samples.read(DropReason::l2_truncated)).empty());
  for (const std::size_t first :
       {std::size_t{0}, std::size_t{1}, std::size_t{63}, std::size_t{64}}) {
    DropSamples split;
    split.take(DropReason::unknown_port, *Frame(counting(200), {.first_segment = first}), kStart);
    CHECK(split.read(DropReason::unknown_port)->length == 200);
    CHECK(head_of(*split.read(DropReason::unknown_port)) == counting(64));
  }
}

TEST_CASE("drop samples: at most one of a reason in ten milliseconds is taken") {
  DropSamples samples;
  const auto first_byte = [&] { return samples.read(DropReason::unknown_port)->head[0]; };
  samples.take(DropReason::unknown_port, *Frame(counting(60, 1)), kStart);
  samples.take(DropReason::unknown_port, *Frame(counting(60, 2)), kStart + 10ms - 1ns);
  CHECK(first_byte() == 1);
  samples.take(DropReason::unknown_port, *Frame(counting(60, 3)), kStart + 10ms);
  CHECK(first_byte() == 3);
  samples.take(DropReason::unknown_port, *Frame(counting(60, 4)), kStart + 19ms);
  CHECK(first_byte() == 3);
  samples.take(DropReason::unknown_port, *Frame(counting(60, 5)), kStart + 1h);
  CHECK(first_byte() == 5);
}

TEST_CASE("drop samples: a reader never sees a mixture of two packets") {
  // Each packet consists of one byte value, and has a length and a time that follow from it.
  constexpr auto kReason = DropReason::unknown_port;
  DropSamples samples;
  std::atomic<bool> stop = false;
  std::atomic<unsigned> faults = 0;
  std::vector<std::thread> readers;
  std::array<std::atomic<unsigned>, 2> reads{};
  for (auto& count : reads) {
    readers.emplace_back([&] {
      Instant newest{0};
      while (!stop.load(std::memory_order_relaxed)) {
        const auto sample = samples.read(kReason);
        if (!sample) continue;
        const std::uint8_t value = sample->head[0];
        const bool whole = std::ranges::all_of(sample->head, [&](auto b) { return b == value; }) &&
                           sample->length == 64u + value &&
                           sample->at.count() / DropSamples::kInterval.count() % 256 == value &&
                           sample->at >= newest;
        newest = sample->at;
        if (!whole) ++faults;
        count.fetch_add(1, std::memory_order_relaxed);
      }
    });
  }
  // As often as nothing but a test does it.
  std::vector<rte_mbuf*> frames;
  for (unsigned value = 0; value < 256; ++value)
    frames.push_back(dsl::make_mbuf(Bytes(64 + value, static_cast<std::uint8_t>(value))));
  const auto enough = [&] {
    return std::ranges::all_of(reads, [](const auto& count) { return count >= 20'000; });
  };
  std::uint64_t tick = 1;
  for (; tick < 100'000 || !enough(); ++tick)
    samples.take(kReason, *frames[tick % 256], DropSamples::kInterval * static_cast<long>(tick));
  stop = true;
  for (auto& reader : readers) reader.join();
  for (rte_mbuf* frame : frames) dsl::free_mbuf(frame);
  CHECK(faults == 0);
  CHECK(samples.read(kReason)->at == DropSamples::kInterval * static_cast<long>(tick - 1));
}

}  // namespace
}  // namespace holdfast

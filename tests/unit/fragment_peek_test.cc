// SPDX-License-Identifier: Apache-2.0
// Another worker looks into a fragment table while its owner changes it: what it sees of a datagram
// belongs together. Run it with TSan, too (tools/test --full).
#include <atomic>
#include <random>
#include <thread>

#include "tests/catch.h"
#include "tests/unit/fragment_fixture.h"

namespace holdfast {
namespace {

constexpr std::uint64_t kNumbers = 64;

/// Which ports a datagram's first fragment tells, by its number.
DatagramFlow flow_of(std::uint64_t number) {
  const auto low = static_cast<std::uint16_t>(number);
  return {IpProtocol::udp, Be16::from_host(low), Be16::from_host(static_cast<std::uint16_t>(~low))};
}
/// So is the size of all its pieces.
FragmentPiece piece_of(std::uint64_t number, unsigned index) {
  const auto size = static_cast<std::uint16_t>(8 * (number + 1));
  return piece(static_cast<std::uint16_t>(index * size), false, size);
}

/// The owner: datagrams of few numbers that begin, grow, are refused and expire.
void churn(FragmentTable& table, std::atomic<std::int64_t>& now, const std::atomic<bool>& stop) {
  std::mt19937 random(1);
  while (!stop.load(std::memory_order_relaxed)) {
    const Instant time{now.fetch_add(1'000'000, std::memory_order_relaxed)};
    const std::uint64_t number = random() % kNumbers;
    const auto index = static_cast<unsigned>(random() % 12);
    const auto what = fragment(number, piece_of(number, index));
    if (index == 0)
      static_cast<void>(table.meet_first(what, flow_of(number), {}, time));
    else
      static_cast<void>(table.meet_later(what, token(number), {}, time));
    table.expire(time, 4);
    while (table.take_released()) {
    }
  }
}

/// Something of it is not of this datagram.
bool is_mixed(const DatagramView& view, std::uint64_t number) {
  if (view.hash != datagram(number) || view.piece_count > FragmentTable::kMaxPieces) return true;
  if (view.state == DatagramState::known && view.flow != flow_of(number)) return true;
  for (const FragmentPiece& seen : view.pieces())
    if (unsigned{seen.end} - seen.start != 8 * (number + 1)) return true;
  return false;
}

}  // namespace

TEST_CASE("what another worker sees of a datagram belongs together while the owner changes it") {
  FragmentTable table{4096};
  std::atomic<std::int64_t> now{Instant{1h}.count()};
  std::atomic<bool> stop{false};
  std::thread owner([&] { churn(table, now, stop); });
  std::mt19937 random(2);
  std::uint64_t known = 0;
  std::uint64_t mixed = 0;
  for (int i = 0; i < 300'000 || (known < 1000 && i < 30'000'000); ++i) {
    const std::uint64_t number = random() % kNumbers;
    const auto view = table.peek(datagram(number), Instant{now.load(std::memory_order_relaxed)});
    if (!view) continue;
    known += view->state == DatagramState::known;
    mixed += is_mixed(*view, number);
  }
  stop = true;
  owner.join();
  CHECK(known >= 1000);
  CHECK(mixed == 0);
}

}  // namespace holdfast

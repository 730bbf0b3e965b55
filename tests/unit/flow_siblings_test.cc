// SPDX-License-Identifier: Apache-2.0
// Other workers' tables: who sees what, who tells whom, and that nothing tears while an owner
// changes its table under a reader's eyes (run it with TSan).
#include "lb/flow/siblings.h"

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/catch.h"
#include "tests/unit/flow_fixture.h"

namespace holdfast {
namespace {

constexpr FlowTime kNow{400};
constexpr FlowLife kProvenFlow{FlowState::established, FlowLife::kProven};

/// One worker's share of all this.
struct Side {
  FlowCounts counts;
  FlowTable table{4000, -1, counts};
  Siblings siblings{table};

  void add(const FlowHash& hash, BackendNumber backend, const Snapshot& snapshot) {
    REQUIRE(table.insert(hash, entry_of(hash, backend, kTcpService, kProvenFlow, kNow), snapshot,
                         kNow));
  }
};

}  // namespace

TEST_CASE("messages arrive in order, and a full ring refuses until it is read") {
  HandoverRing ring;
  CHECK_FALSE(ring.pop());
  for (std::uint64_t lap = 0; lap < 3; ++lap) {
    for (std::uint64_t i = 0; i < HandoverRing::kSize; ++i)
      REQUIRE(ring.push({.hash = {.low64 = i, .high64 = lap}, .backend = kBackendB}));
    CHECK_FALSE(ring.has_room());
    CHECK_FALSE(ring.push({}));
    for (std::uint64_t i = 0; i < HandoverRing::kSize; ++i) {
      const auto message = ring.pop();
      REQUIRE(message);
      REQUIRE(message->hash == FlowHash{.low64 = i, .high64 = lap});
    }
    CHECK_FALSE(ring.pop());
  }
}

TEST_CASE("a worker sees its siblings' flows with backend and life, and not its own") {
  const Snapshot snapshot = two_services();
  Side a, b, c;
  Siblings::connect({&a.siblings, &b.siblings, &c.siblings});
  Random random(1);
  const FlowHash at_a = random.hash();
  const FlowHash at_c = random.hash();
  a.add(at_a, kBackendA, snapshot);
  c.add(at_c, kBackendC, snapshot);

  const auto found = b.siblings.find(at_c);
  REQUIRE(found);
  CHECK(found->flow.backend == kBackendC);
  CHECK(found->flow.life == kProvenFlow);
  CHECK(b.siblings.find(at_a)->flow.backend == kBackendA);
  CHECK_FALSE(a.siblings.find(at_a));
  CHECK_FALSE(b.siblings.find(random.hash()));
}

TEST_CASE("a lone worker has nobody to ask") {
  Side a;
  Siblings::connect({&a.siblings});
  CHECK_FALSE(a.siblings.any());
  CHECK_FALSE(a.siblings.find(FlowHash{.low64 = 1, .high64 = 2}));
}

TEST_CASE("an owner that is told drops its entry, if it is still on the copied backend") {
  const Snapshot snapshot = two_services();
  Side a, b;
  Siblings::connect({&a.siblings, &b.siblings});
  Random random(2);
  const FlowHash same = random.hash();
  const FlowHash moved = random.hash();
  a.add(same, kBackendA, snapshot);
  a.add(moved, kBackendC, snapshot);  // placed anew meanwhile

  const unsigned owner = b.siblings.find(same)->owner;
  b.siblings.tell(owner, {same, kBackendA});
  b.siblings.tell(owner, {moved, kBackendA});
  CHECK(a.table.find(same) != FlowTable::kNowhere);  // not before it reads
  a.siblings.read_messages();
  CHECK(a.table.find(same) == FlowTable::kNowhere);
  CHECK(a.table.find(moved) != FlowTable::kNowhere);
  CHECK(counters_of(a.table).handed_over == 1);
  CHECK(a.counts.backend(kBackendA).read().active == 0);
}

TEST_CASE("all others are told at once, and what does not fit in a ring is forgotten") {
  const Snapshot snapshot = two_services();
  Side a, b, c;
  Siblings::connect({&a.siblings, &b.siblings, &c.siblings});
  const FlowHash hash = Random(3).hash();
  a.add(hash, kBackendA, snapshot);
  c.add(hash, kBackendA, snapshot);
  b.siblings.tell_all({hash, kBackendA});
  for (std::uint32_t i = 0; i < 2 * HandoverRing::kSize; ++i) b.siblings.tell_all({});
  CHECK_FALSE(b.siblings.can_tell(0));
  a.siblings.read_messages();
  c.siblings.read_messages();
  CHECK(a.table.find(hash) == FlowTable::kNowhere);
  CHECK(c.table.find(hash) == FlowTable::kNowhere);
  CHECK(b.siblings.can_tell(0));
}

TEST_CASE("a reader never misses a flow that is always there, and never sees a torn entry") {
  // The owner keeps its table so full that entries are relocated all the time, while the readers
  // look for flows that were recorded before they started. Each flow's backend follows from its
  // hash, so a mixture of two entries would show.
  const Snapshot snapshot = two_services();
  const auto backend_of = [](const FlowHash& hash) {
    return BackendNumber{static_cast<std::uint16_t>(flow_tag(hash) % 3)};
  };
  FlowCounts counts;
  FlowTable table(1000, -1, counts);
  Random random(4);
  std::vector<FlowHash> residents;
  while (residents.size() < 600) {
    const FlowHash hash = random.hash();
    if (table.insert(hash, entry_of(hash, backend_of(hash), kTcpService, kProvenFlow, kNow),
                     snapshot, kNow))
      residents.push_back(hash);
  }

  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> looks{0};
  std::atomic<std::uint64_t> faults{0};
  std::vector<std::thread> readers;
  readers.reserve(2);
  for (int r = 0; r < 2; ++r)
    readers.emplace_back([&] {
      while (!stop.load(std::memory_order_relaxed))
        for (const FlowHash& hash : residents) {
          const auto seen = table.peek(hash);
          if (!seen || seen->backend != backend_of(hash) ||
              seen->life.state != FlowState::established)
            faults.fetch_add(1);
          looks.fetch_add(1, std::memory_order_relaxed);
        }
    });

  // Passers-by fill the rest, force the residents to move, and are dropped again.
  std::vector<FlowHash> passers;
  std::uint64_t rounds = 0;
  while (rounds < 300'000 || looks.load(std::memory_order_relaxed) < 100'000) {
    ++rounds;
    const FlowHash hash = random.hash();
    if (table.insert(hash, entry_of(hash, backend_of(hash), kTcpService, kProvenFlow, kNow),
                     snapshot, kNow))
      passers.push_back(hash);
    if (passers.size() > 320) {
      const auto i = random.below(passers.size());
      table.hand_over(passers[i], backend_of(passers[i]));
      passers[i] = passers.back();
      passers.pop_back();
    }
    const FlowHash& resident = random.one_of(residents);
    const auto place = table.find(resident);
    const FlowEntry entry = table.at(place);
    FlowEntry after = entry;
    after.set_life({FlowState::established, static_cast<std::uint8_t>(random.below(3))});
    after.set_last_seen(kNow - FlowTime{static_cast<std::int64_t>(random.below(100))});
    table.update(place, entry, after);
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();

  CHECK(faults == 0);
  CHECK(counters_of(table).relocations > 1000);
}

TEST_CASE("two workers that hand flows to and fro end with each flow in one table") {
  // As pick_backend does it: look, copy, tell; each worker reads its messages once a round.
  const Snapshot snapshot = two_services();
  Side sides[2];
  Siblings::connect({&sides[0].siblings, &sides[1].siblings});
  Random random(5);
  std::vector<FlowHash> flows;
  for (int i = 0; i < 200; ++i) {
    flows.push_back(random.hash());
    sides[0].add(flows.back(), kBackendB, snapshot);
  }

  std::atomic<std::uint64_t> strangers{0};
  const auto enough = [&] {
    return counters_of(sides[0].table).handed_over > 2000 &&
           counters_of(sides[1].table).handed_over > 2000;
  };
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{60};
  const auto work = [&](Side& side, std::uint64_t seed) {
    Random own(seed);
    while (!enough() && std::chrono::steady_clock::now() < deadline) {
      side.siblings.read_messages();
      const FlowHash& hash = own.one_of(flows);
      if (side.table.find(hash) != FlowTable::kNowhere) continue;
      const auto found = side.siblings.find(hash);
      // In neither table: only when the other worker dropped its entry after ours was looked for.
      if (!found || !side.siblings.can_tell(found->owner)) continue;
      if (found->flow.backend != kBackendB) strangers.fetch_add(1);
      if (side.table.insert(hash, entry_of(hash, kBackendB, kTcpService, found->flow.life, kNow),
                            snapshot, kNow))
        side.siblings.tell(found->owner, {hash, found->flow.backend});
    }
  };
  std::thread other([&] { work(sides[1], 7); });
  work(sides[0], 6);
  other.join();
  for (Side& side : sides) side.siblings.read_messages();

  CHECK(enough());
  CHECK(strangers == 0);
  for (const FlowHash& hash : flows) {
    const int tables = (sides[0].table.find(hash) != FlowTable::kNowhere) +
                       (sides[1].table.find(hash) != FlowTable::kNowhere);
    REQUIRE(tables == 1);
  }
}

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
#include "lb/snapshot_slot.h"

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "tests/catch.h"

namespace holdfast {
namespace {

/// A snapshot whose parts all carry its generation, so that a reader can tell a whole one from one
/// that is being freed. `freed` counts: the pool's table is released with the last snapshot of it.
std::unique_ptr<Snapshot> numbered(std::uint64_t generation,
                                   std::atomic<unsigned>* freed = nullptr) {
  auto snapshot = std::make_unique<Snapshot>();
  snapshot->generation = generation;
  snapshot->next_hops.assign(64, NextHop{.mtu = static_cast<std::uint16_t>(generation)});
  std::shared_ptr<const SlotTable> table(new SlotTable(1), [freed](const SlotTable* dead) {
    if (freed != nullptr) freed->fetch_add(1);
    delete dead;
  });
  snapshot->pools.push_back({.present = true, .base = table, .effective = table});
  return snapshot;
}

TEST_CASE("readers see the snapshot that was published last") {
  SnapshotSlot slot(1);
  slot.publish(numbered(1));
  auto reader = slot.reader(0);
  reader.online();
  CHECK(reader.read().generation == 1);
  slot.publish(numbered(2));
  CHECK(reader.read().generation == 2);
  reader.offline();
}

TEST_CASE("an old snapshot stays while a reader has not reported the end of its burst") {
  std::atomic<unsigned> freed = 0;
  SnapshotSlot slot(2);
  auto busy = slot.reader(0);
  auto quick = slot.reader(1);
  slot.publish(numbered(1, &freed));
  busy.online();
  quick.online();
  const Snapshot& old = busy.read();

  slot.publish(numbered(2, &freed));
  quick.quiescent();
  slot.reclaim();
  CHECK(slot.waiting() == 1);
  CHECK(freed == 0);
  CHECK(old.generation == 1);

  busy.quiescent();
  slot.reclaim();
  CHECK(slot.waiting() == 0);
  CHECK(freed == 1);
  busy.offline();
  quick.offline();
}

TEST_CASE("a reader that sleeps holds no snapshot back") {
  std::atomic<unsigned> freed = 0;
  SnapshotSlot slot(2);
  auto asleep = slot.reader(0);
  auto awake = slot.reader(1);
  awake.online();
  slot.publish(numbered(1, &freed));
  asleep.online();
  CHECK(asleep.read().generation == 1);
  asleep.offline();

  slot.publish(numbered(2, &freed));
  awake.quiescent();
  slot.reclaim();
  CHECK(freed == 1);
  asleep.online();
  CHECK(asleep.read().generation == 2);
  asleep.offline();
  awake.offline();
}

TEST_CASE("publishing does not wait for a reader that hangs") {
  std::atomic<unsigned> freed = 0;
  SnapshotSlot slot(1);
  slot.publish(numbered(1, &freed));
  auto stuck = slot.reader(0);
  stuck.online();
  for (std::uint64_t generation = 2; generation <= 100; ++generation)
    slot.publish(numbered(generation, &freed));
  CHECK(slot.waiting() == 99);
  CHECK(freed == 0);
  stuck.offline();
  slot.reclaim();
  CHECK(slot.waiting() == 0);
  CHECK(freed == 99);
}

TEST_CASE("the slot frees what it holds when it ends") {
  std::atomic<unsigned> freed = 0;
  {
    SnapshotSlot slot(1);
    auto reader = slot.reader(0);
    slot.publish(numbered(1, &freed));
    reader.online();
    slot.publish(numbered(2, &freed));
    reader.offline();
  }
  CHECK(freed == 2);
}

TEST_CASE("readers under constant publication never see a snapshot that is torn or freed") {
  constexpr unsigned kReaders = 3;
  constexpr std::uint64_t kGenerations = 3000;
  std::atomic<unsigned> freed = 0;
  std::atomic<bool> stop = false;
  std::array<std::atomic<std::uint64_t>, kReaders> faults{};
  std::array<std::atomic<std::uint64_t>, kReaders> reads{};
  {
    SnapshotSlot slot(kReaders);
    slot.publish(numbered(1, &freed));
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < kReaders; ++i) {
      threads.emplace_back([&, i, reader = slot.reader(i)]() mutable {
        std::uint64_t newest = 0;
        reader.online();
        while (!stop.load(std::memory_order_relaxed)) {
          const Snapshot& now = reader.read();
          const auto mark = static_cast<std::uint16_t>(now.generation);
          bool whole = now.generation >= newest;  // time never runs backwards
          for (const NextHop& hop : now.next_hops) whole &= hop.mtu == mark;
          newest = now.generation;
          if (!whole) faults[i].fetch_add(1);
          reader.quiescent();
          if (reads[i].fetch_add(1) % 64 == 63) {  // an idle spell, as workers have them
            reader.offline();
            std::this_thread::yield();
            reader.online();
          }
        }
        reader.offline();
      });
    }
    for (std::uint64_t generation = 2; generation <= kGenerations; ++generation) {
      slot.publish(numbered(generation, &freed));
      if (generation % 16 == 0) std::this_thread::yield();
    }
    for (auto& count : reads)
      while (count.load() < 1000) std::this_thread::yield();
    stop = true;
    for (auto& thread : threads) thread.join();
    slot.reclaim();
    CHECK(slot.waiting() == 0);
    CHECK(freed == kGenerations - 1);
  }
  CHECK(freed == kGenerations);
  for (const auto& count : faults) CHECK(count == 0);
}

}  // namespace
}  // namespace holdfast

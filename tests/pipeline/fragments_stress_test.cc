// SPDX-License-Identifier: Apache-2.0
// Three workers on threads of their own, between whom the fragments of datagrams are spread at
// random, so that each reads the others' tables while they change. Run it with TSan, too
// (tools/test --full).
#include <array>
#include <barrier>
#include <cstring>
#include <exception>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/pipeline/fragments.h"

using namespace holdfast;
using namespace holdfast::dsl;

namespace {

constexpr unsigned kWorkers = 3;
constexpr unsigned kRounds = 60;
constexpr std::uint16_t kDatagrams = 24;  // a round

/// Outer destination of what was sent; unlike destination() it may be called on any thread.
std::uint32_t went_to(const Handled& handled) {
  std::uint32_t address = 0;
  if (handled.kind == Handled::Kind::sent && handled.frame.size() >= 34)
    std::memcpy(&address, handled.frame.data() + 14 + 16, sizeof address);
  return address;
}

/// The inner destination port of a client's datagrams would not be in later fragments: their number
/// (the inner header's identification, or the fragment header's) tells whose a packet is.
std::uint16_t number_of(const Handled& handled) {
  constexpr std::size_t kInner = 14 + 20;
  const bool v4 = handled.frame.at(kInner) >> 4 == 4;
  const std::size_t at = v4 ? kInner + 4 : kInner + 40 + 6;
  return static_cast<std::uint16_t>(handled.frame.at(at) << 8 | handled.frame.at(at + 1));
}

struct ThreadedWorker {
  LbUnderTest lb{both_services(),
                 {.flows = {.capacity = 10'000, .sibling_lookup_rate = 1'000'000}}};
  std::array<std::vector<Packet>, kRounds> work{};
  std::vector<Handled> sent_ones{};
};

struct Faults {
  std::mutex mutex{};
  std::string thrown{};
};

void run(ThreadedWorker& worker, std::barrier<>& together, Faults& faults) {
  for (const std::vector<Packet>& packets : worker.work) {
    try {
      for (const Packet& packet : packets) {
        Handled handled = worker.lb.handle(packet);
        if (handled.kind != Handled::Kind::held) worker.sent_ones.push_back(std::move(handled));
      }
    } catch (const std::exception& failure) {
      const std::lock_guard lock(faults.mutex);
      faults.thrown = failure.what();
    }
    // By now each first fragment has come to its worker.
    together.arrive_and_wait();
    for (int polls = 0; polls < 8; ++polls) {
      worker.lb.pass(20ms);  // so that no table gets full
      worker.lb.idle();
    }
    std::ranges::move(worker.lb.take_released(), std::back_inserter(worker.sent_ones));
    together.arrive_and_wait();
  }
}

}  // namespace

TEST_CASE("fragments that are spread over threads at random all go where their flow goes") {
  std::array<ThreadedWorker, kWorkers> workers;
  const std::array all{&workers[0].lb.flows, &workers[1].lb.flows, &workers[2].lb.flows};
  FlowContext::connect(all);
  std::mt19937 random(3);
  std::size_t pieces = 0;
  std::vector<std::uint32_t> homes;
  LbUnderTest judge(both_services(), {});
  for (unsigned round = 0; round < kRounds; ++round) {
    std::vector<Packet> packets;
    for (std::uint16_t i = 0; i < kDatagrams; ++i) {
      const auto number = static_cast<std::uint16_t>(round * kDatagrams + i);
      const Client client{i % 2 == 0 ? Family::ipv4 : Family::ipv6,
                          static_cast<std::uint16_t>(1000 + number)};
      homes.push_back(went_to(judge.handle(client.whole(100))));
      for (const Packet& piece : client.pieces(4000, number)) packets.push_back(piece);
    }
    std::ranges::shuffle(packets, random);
    pieces += packets.size();
    for (const Packet& packet : packets) workers[random() % kWorkers].work[round].push_back(packet);
  }

  std::barrier<> together(kWorkers);
  Faults faults;
  std::vector<std::thread> threads;
  threads.reserve(kWorkers);
  for (ThreadedWorker& worker : workers)
    threads.emplace_back([&] { run(worker, together, faults); });
  for (std::thread& thread : threads) thread.join();

  CHECK(faults.thrown.empty());
  std::size_t arrived = 0;
  for (const ThreadedWorker& worker : workers) {
    CHECK(worker.lb.counters().held_now == 0);
    CHECK(worker.lb.counters().dropped_sum() == 0);
    for (const Handled& handled : worker.sent_ones) {
      REQUIRE(went_to(handled) == homes[number_of(handled)]);
      ++arrived;
    }
  }
  CHECK(arrived == pieces);
}

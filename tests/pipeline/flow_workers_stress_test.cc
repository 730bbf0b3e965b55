// SPDX-License-Identifier: Apache-2.0
// Three workers on threads of their own, between whom the packets of the same flows jump to and fro
// while their tables churn. Run it with TSan, too (tools/test --full).
#include <array>
#include <atomic>
#include <cstring>
#include <exception>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/pipeline/flows.h"

using namespace holdfast;
using namespace holdfast::dsl;

namespace {

constexpr unsigned kWorkers = 3;
constexpr std::uint64_t kCapacity = 1000;  // of each
constexpr std::uint16_t kFirst = 1000;
constexpr std::uint16_t kFlows = 600;

/// Where a packet was tunnelled to. Unlike destination() it may be called on any thread.
BackendNumber went_to(const Handled& handled, const LbUnderTest& lb) {
  if (handled.kind != Handled::Kind::sent || handled.frame.size() < 34) return kNoBackend;
  Be32 address;
  std::memcpy(&address, handled.frame.data() + 14 + 16, sizeof address);
  for (std::size_t i = 0; i < lb.snapshot().backends.size(); ++i)
    if (lb.snapshot().backends[i].address == IpAddress::v4(address))
      return static_cast<BackendNumber>(i);
  return kNoBackend;
}

struct Flow {
  Packet packet;
  BackendNumber home;
};

struct Workers {
  std::vector<std::unique_ptr<LbUnderTest>> lbs;
  std::vector<Flow> flows;

  /// Each worker opens a third of the flows; then Maglev would move every third one.
  Workers() {
    std::vector<FlowContext*> contexts;
    const FlowOptions options{.capacity = kCapacity, .sibling_lookup_rate = 1'000'000'000};
    for (unsigned i = 0; i < kWorkers; ++i) {
      lbs.push_back(std::make_unique<LbUnderTest>(web({kB1, kB2, kB3}),
                                                  LbUnderTest::Options{.flows = options}));
      contexts.push_back(&lbs.back()->flows);
    }
    FlowContext::connect(contexts);
    for (std::uint16_t i = 0; i < kFlows; ++i) {
      LbUnderTest& lb = *lbs[i % kWorkers];
      const auto client = static_cast<std::uint16_t>(kFirst + i);
      flows.push_back({data(client), lb.number_of(open_flow(lb, client))});
    }
    for (int period = 0; period < 2; ++period) {
      for (const auto& lb : lbs) lb->pass(10s);
      for (std::uint16_t i = 0; i < kFlows; ++i)
        static_cast<void>(lbs[i % kWorkers]->handle(flows[i].packet));
    }
    for (const auto& lb : lbs) set_state(*lb, kB2, BackendState::draining);
  }

  template <class Read>
  std::uint64_t sum(Read read) const {
    std::uint64_t total = 0;
    for (const auto& lb : lbs) total += read(lb->flows.table_counters());
    return total;
  }
  std::uint64_t handed_over() const {
    return sum([](const FlowTableCounters& counters) { return counters.handed_over; });
  }
};

/// What went wrong on any of the threads.
struct Faults {
  std::atomic<std::uint64_t> moved{0};
  std::mutex mutex{};
  std::string thrown{};
};

/// One worker's thread: bursts of packets of flows that it may or may not know, and of strangers
/// that fill its table, so that entries are evicted, moved and swept all the time.
void work(unsigned number, LbUnderTest& lb, const std::vector<Flow>& flows,
          const std::atomic<bool>& stop, Faults& faults) try {
  std::mt19937 random(number);
  std::uint32_t stranger = number << 24;
  while (!stop.load(std::memory_order_relaxed)) {
    std::vector<Packet> burst;
    std::vector<BackendNumber> homes;
    for (int i = 0; i < 16; ++i) {
      const Flow& flow = flows[random() % flows.size()];
      burst.push_back(flow.packet);
      homes.push_back(flow.home);
      burst.push_back(Eth{} / Ip4{.src = IpAddress::v4(Be32::from_host(0x0b000000u + ++stranger))} /
                      Tcp{.flags = Syn});
    }
    const std::vector<Handled> handled = lb.handle_all(burst);
    for (std::size_t i = 0; i < homes.size(); ++i)
      faults.moved += went_to(handled[2 * i], lb) != homes[i];
    lb.pass(5ms);
  }
} catch (const std::exception& failure) {
  const std::lock_guard lock(faults.mutex);
  faults.thrown = failure.what();
}

}  // namespace

TEST_CASE("flows that jump between workers at random keep their backends while the tables churn") {
  Workers workers;
  std::atomic<bool> stop{false};
  Faults faults;
  std::vector<std::thread> threads;
  threads.reserve(kWorkers);
  for (unsigned i = 0; i < kWorkers; ++i)
    threads.emplace_back([&, i] { work(i, *workers.lbs[i], workers.flows, stop, faults); });
  const auto start = std::chrono::steady_clock::now();
  const auto ran = [&] { return std::chrono::steady_clock::now() - start; };
  while (ran() < 2s || (workers.handed_over() < 5000 && ran() < 60s))
    std::this_thread::sleep_for(10ms);
  stop = true;
  for (std::thread& thread : threads) thread.join();

  CHECK(faults.thrown.empty());
  CHECK(faults.moved == 0);
  CHECK(workers.handed_over() >= 5000);
  CHECK(workers.sum([](const auto& counters) { return counters.relocations; }) > 100);
  CHECK(workers.sum([](const auto& counters) { return counters.evicted_embryonic; }) > 1000);
  CHECK(workers.sum([](const auto& counters) { return counters.sweeps; }) > 0);
  CHECK(workers.sum([](const auto& counters) { return counters.sibling_refused; }) == 0);
  // Wherever a flow has ended, each worker sends it home.
  for (const auto& lb : workers.lbs)
    for (const Flow& flow : workers.flows)
      REQUIRE(went_to(lb->handle(flow.packet), *lb) == flow.home);
}

// SPDX-License-Identifier: Apache-2.0
// A worker's flow context: its clock, the pace of its sweep, its memory, its counters.
#include "lb/flow/flow_context.h"

#include <algorithm>
#include <cstdint>

#include "tests/catch.h"
#include "tests/unit/flow_fixture.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

std::uint64_t sweeps(const FlowContext& flows) { return flows.table_counters().sweeps; }

}  // namespace

TEST_CASE("the flow clock counts quarters of a second since the start and never goes back") {
  FlowContext flows({.capacity = 4, .start = 1000s});
  CHECK(flows.now == FlowTime{0});
  flows.set_now(1000s + 249ms);
  CHECK(flows.now == FlowTime{0});
  flows.set_now(1000s + 250ms);
  CHECK(flows.now == FlowTime{1});
  flows.set_now(1060s);
  CHECK(flows.now == FlowTime{240});
  flows.set_now(1059s);
  CHECK(flows.now == FlowTime{240});
  CHECK(flows.clock == Instant{1060s});
}

TEST_CASE("an idle worker's sweep passes over the table about every 10 s") {
  const Snapshot snapshot = two_services();
  FlowContext flows({.capacity = 100'000});
  Instant time = 0s;
  for (int i = 0; i < 600; ++i) flows.tend(snapshot, time += 100ms, 1'000'000);  // a minute
  CHECK(sweeps(flows) >= 5);
  CHECK(sweeps(flows) <= 6);
}

TEST_CASE("a poll sweeps no more than it may, and makes up for it in the next ones") {
  const Snapshot snapshot = two_services();
  FlowContext flows({.capacity = 64'000});
  flows.tend(snapshot, 100s, 64);
  for (int polls = 1; polls < 999; ++polls) flows.tend(snapshot, 100s, 64);
  CHECK(sweeps(flows) == 0);
  flows.tend(snapshot, 100s, 64);  // the thousandth
  CHECK(sweeps(flows) == 1);
  for (int polls = 0; polls < 5000; ++polls) flows.tend(snapshot, 100s, 64);
  CHECK(sweeps(flows) == 1);  // nothing is due before time passes
}

TEST_CASE("a worker that was held up for an hour owes one pass, not hundreds") {
  const Snapshot snapshot = two_services();
  FlowContext flows({.capacity = 4000});
  flows.tend(snapshot, 3600s, 1'000'000);
  for (int polls = 0; polls < 10; ++polls) flows.tend(snapshot, 3600s, 1'000'000);
  CHECK(sweeps(flows) == 1);
}

TEST_CASE("a worker that was too busy to sweep for minutes owes one pass") {
  const Snapshot snapshot = two_services();
  FlowContext flows({.capacity = 40'000});
  for (Instant time = 0s; time < 300s; time += 250ms) flows.tend(snapshot, time, 4);
  CHECK(sweeps(flows) == 0);
  for (int polls = 0; polls < 10; ++polls) flows.tend(snapshot, 300s, 1'000'000);
  CHECK(sweeps(flows) == 1);
}

TEST_CASE("even the smallest table is swept") {
  const Snapshot snapshot = two_services();
  FlowContext flows({.capacity = 1});
  for (Instant time = 0s; time < 60s; time += 100ms) flows.tend(snapshot, time, 64);
  CHECK(sweeps(flows) >= 5);
}

TEST_CASE("a table's memory is zeroed and starts at a cache line, small or large") {
  for (const std::size_t size : {std::size_t{64}, std::size_t{100'032}, std::size_t{5} << 20}) {
    CAPTURE(size);
    const auto memory = map_table_memory(size, -1);
    const auto bytes = memory->bytes();
    REQUIRE(bytes.size() == size);
    CHECK(reinterpret_cast<std::uintptr_t>(bytes.data()) % 64 == 0);
    CHECK(std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; }));
    std::ranges::fill(bytes, std::byte{1});  // all of it is there
    CHECK(memory->description().find("MiB in ") != std::string::npos);
  }
}

TEST_CASE("a node that does not exist is no reason to fail, and is said") {
  const auto memory = map_table_memory(4096, 1000);
  CHECK(memory->bytes().size() == 4096);
  CHECK(memory->description().find("node 1000 was refused") != std::string::npos);
}

TEST_CASE("a table that is too large for the machine is refused in one sentence") {
  try {
    static_cast<void>(map_table_memory(std::size_t{1} << 50, -1));
    FAIL("a petabyte was mapped");
  } catch (const std::runtime_error& failure) {
    const std::string message = failure.what();
    CHECK(message.find("flow_capacity") != std::string::npos);
    CHECK(message.find('\n') == std::string::npos);
  }
}

TEST_CASE("every number has counters, the highest one too") {
  FlowContext flows({.capacity = 4});
  const ServiceNumber service{0xfffe};
  const BackendNumber backend{0xfffe};
  flows.count_forwarded(service, backend, 1500);
  flows.count_forwarded(service, backend, 40);
  CHECK(flows.backend_counters(backend).packets == 2);
  CHECK(flows.backend_counters(backend).bytes == 1540);
  CHECK(flows.service_counters(service).packets == 2);
  CHECK(flows.backend_counters(BackendNumber{0}).packets == 0);
}

}  // namespace holdfast

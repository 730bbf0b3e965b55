// SPDX-License-Identifier: Apache-2.0
#include "tests/dsl/lb_under_test.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace holdfast::dsl {

namespace {

constexpr HashSeed kSeed{0x0123456789abcdef};

void require(bool holds, std::string_view what, const PacketCounters& c) {
  if (holds) return;
  throw std::logic_error(fmt::format(
      "{}: received {} forwarded {} answered {} to_kernel {} dropped {} held {} transmitted {}",
      what, c.received, c.forwarded, c.answered, c.to_kernel, c.dropped_sum(), c.held_now,
      c.transmitted));
}

/// lib/model/stats.h.
void require_identity(const PacketCounters& c) {
  require(c.received == c.forwarded + c.answered + c.to_kernel + c.dropped_sum() + c.held_now,
          "the counter identity of received packets does not hold", c);
  require(
      c.transmitted == c.forwarded + c.extra_fragments + c.answered + c.injected + c.from_kernel,
      "the counter identity of transmitted packets does not hold", c);
}

/// lib/model/stats.h: every entry that was inserted is still there or left in one way.
void require_identity(const FlowTableCounters& c) {
  if (c.inserted == c.embryonic + c.established + c.closing + c.expired + c.evicted_embryonic +
                        c.evicted_stale + c.gone + c.handed_over)
    return;
  throw std::logic_error("entries of the flow table came or went without being counted");
}

/// Of a packet whose verdict was another: the port or the kernel did not take it.
DropReason reason_after_verdict(const PacketCounters& before, const PacketCounters& after) {
  for (const DropReason reason :
       {DropReason::tx_full, DropReason::multi_segment, DropReason::no_kernel_path}) {
    const auto i = static_cast<std::size_t>(reason);
    if (after.dropped[i] != before.dropped[i]) return reason;
  }
  throw std::logic_error("a packet was freed and no drop reason was counted");
}

/// Takes the packets that the worker made out of `fates`: each left right behind the packet whose
/// fragment it is, by the same port. By the arrival of that one.
std::map<std::size_t, std::vector<Bytes>> take_further_fragments(std::vector<TestIo::Fate>& fates) {
  std::map<std::size_t, std::vector<Bytes>> more;
  const TestIo::Fate* in_front = nullptr;
  for (TestIo::Fate& fate : fates) {
    if (fate.arrival != TestIo::kMade) {
      in_front = &fate;
    } else if (fate.kind == TestIo::Fate::Kind::sent) {
      if (in_front == nullptr || in_front->kind != TestIo::Fate::Kind::sent ||
          in_front->port != fate.port)
        throw std::logic_error("a fragment left that is not behind its first one");
      more[in_front->arrival].push_back(std::move(fate.frame));
    }
  }
  std::erase_if(fates, [](const TestIo::Fate& fate) { return fate.arrival == TestIo::kMade; });
  return more;
}

/// A flow's packets must not overtake each other, but for those that had to wait.
void require_order(const std::vector<TestIo::Fate>& fates, const std::set<std::size_t>& waited) {
  std::map<PortNumber, std::size_t> last;
  for (const TestIo::Fate& fate : fates) {
    if (fate.kind != TestIo::Fate::Kind::sent || fate.arrival == TestIo::kMade ||
        waited.contains(fate.arrival))
      continue;
    const auto [seen, is_first] = last.try_emplace(fate.port, fate.arrival);
    if (!is_first && seen->second > fate.arrival)
      throw std::logic_error("packets of one port left in another order than they came in");
    seen->second = fate.arrival;
  }
}

}  // namespace

Handled sent(const Packet& packet, std::uint8_t port) {
  return {.kind = Handled::Kind::sent, .frame = packet.bytes(), .port = PortNumber{port}};
}
Handled answered(const Packet& packet, std::uint8_t port) {
  return {.kind = Handled::Kind::answered, .frame = packet.bytes(), .port = PortNumber{port}};
}
Handled to_kernel(const Packet& packet) {
  return {.kind = Handled::Kind::to_kernel, .frame = packet.bytes()};
}
Handled dropped(DropReason reason) { return {.kind = Handled::Kind::dropped, .reason = reason}; }
Handled held() { return {.kind = Handled::Kind::held}; }

LbUnderTest::LbUnderTest(std::vector<ServiceSpec> services, Options options)
    : flows(options.flows),
      services_(std::move(services)),
      worker_({.io = io,
               .flows = flows,
               .counters = *counters_,
               .icmp_relay_rate = options.icmp_relay_rate,
               .icmp_answer_rate = options.icmp_answer_rate,
               .witness = &verdicts_}) {
  publish();
}

void LbUnderTest::Verdicts::see(const Burst& burst) noexcept {
  for (Burst::Lane lane = 0; lane < burst.size; ++lane) {
    const std::size_t arrival = io_.arrival_of(burst.mbuf[lane]);
    of[arrival] = burst.verdict[lane];
    if (burst.verdict[lane] == Verdict::held()) held.insert(arrival);
  }
}

void LbUnderTest::publish() { snapshot_ = build_snapshot(services_, kSeed); }

BackendSpec& LbUnderTest::backend(Ip address) {
  for (ServiceSpec& spec : services_)
    for (BackendSpec& candidate : spec.backends)
      if (candidate.address == address) return candidate;
  throw std::invalid_argument("no backend " + address.text());
}

BackendNumber LbUnderTest::number_of(Ip address) const {
  const auto& backends = snapshot_->backends;
  const auto found =
      std::ranges::find(backends, static_cast<IpAddress>(address), &Backend::address);
  if (found == backends.end()) throw std::invalid_argument("no backend " + address.text());
  return static_cast<BackendNumber>(found - backends.begin());
}

Handled LbUnderTest::handle(std::span<const std::uint8_t> frame, const MbufShape& shape) {
  const std::size_t arrival = io.push(frame, shape);
  Handled handled = handle_pushed(arrival, 1).at(0);
  if (handled.kind == Handled::Kind::held) held_frames_[arrival] = {frame.begin(), frame.end()};
  return handled;
}

std::vector<Handled> LbUnderTest::take_released() {
  std::vector<Handled> all;
  for (Released& one : take_released_frames()) all.push_back(std::move(one.handled));
  return all;
}

std::vector<Handled> LbUnderTest::handle_all(const std::vector<Packet>& packets) {
  if (packets.empty()) return {};
  std::size_t last = 0;
  for (const Packet& packet : packets) last = io.push(packet.bytes(), {});
  const std::size_t first = last + 1 - packets.size();
  auto all = handle_pushed(first, packets.size());
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].kind == Handled::Kind::held) held_frames_[first + i] = packets[i].bytes();
  return all;
}

/// Empty: it came by io.push() alone.
Bytes LbUnderTest::frame_of_held(std::size_t arrival) {
  auto node = held_frames_.extract(arrival);
  return node.empty() ? Bytes{} : std::move(node.mapped());
}

/// What becomes of all that waits: of `count` packets from arrival `first` on it is returned.
std::vector<Handled> LbUnderTest::handle_pushed(std::size_t first, std::size_t count) {
  std::vector<Handled> all(count, held());
  do {
    for (Departure& outcome : poll()) {
      if (outcome.arrival >= first && outcome.arrival < first + count)
        all[outcome.arrival - first] = std::move(outcome.handled);
      else
        released_.push_back({std::move(outcome.handled), frame_of_held(outcome.arrival)});
    }
  } while (io.waiting() != 0);
  return all;
}

void LbUnderTest::drain_queue() {
  while (!run_burst().empty() || io.waiting() != 0) {
  }
}

/// One burst and all that must hold after it; what became of its packets, in order of departure.
std::vector<TestIo::Fate> LbUnderTest::run_burst() {
  const PacketCounters before = counters();
  const unsigned received = worker_.poll_once(*snapshot_, time);
  const PacketCounters after = counters();
  auto fates = io.take_fates();
  const auto made =
      static_cast<std::size_t>(std::ranges::count(fates, TestIo::kMade, &TestIo::Fate::arrival));
  if (fates.size() - made + after.held_now != received + before.held_now ||
      io.held() != after.held_now)
    throw std::logic_error("a packet was received and never given back");
  const auto left = [&fates](TestIo::Fate::Kind kind) {
    return static_cast<std::uint64_t>(std::ranges::count(fates, kind, &TestIo::Fate::kind));
  };
  require_identity(after);
  require_identity(flows.table_counters());
  require(after.received == before.received + received, "received was not counted", after);
  require(after.transmitted == before.transmitted + left(TestIo::Fate::Kind::sent),
          "transmitted is not what the ports took", after);
  require(after.to_kernel == before.to_kernel + left(TestIo::Fate::Kind::to_kernel),
          "to_kernel is not what the kernel took", after);
  require_order(fates, verdicts_.held);
  return fates;
}

/// One burst; what became of its packets, and of those that had been held, in order of departure.
std::vector<LbUnderTest::Departure> LbUnderTest::poll() {
  const PacketCounters before = counters();
  verdicts_.of.clear();
  auto fates = run_burst();
  auto more = take_further_fragments(fates);
  std::vector<Departure> result;
  for (TestIo::Fate& fate : fates) {
    Handled handled{
        .frame = std::move(fate.frame), .port = fate.port, .more = std::move(more[fate.arrival])};
    const Verdict verdict = verdicts_.of.at(fate.arrival);
    switch (fate.kind) {
      case TestIo::Fate::Kind::sent:
        handled.kind =
            verdict.outcome == Outcome::answer ? Handled::Kind::answered : Handled::Kind::sent;
        break;
      case TestIo::Fate::Kind::to_kernel:
        handled.kind = Handled::Kind::to_kernel;
        break;
      case TestIo::Fate::Kind::freed:
        handled.kind = Handled::Kind::dropped;
        handled.reason = verdict.outcome == Outcome::drop
                             ? verdict.reason
                             : reason_after_verdict(before, counters());
        break;
    }
    result.push_back({fate.arrival, std::move(handled)});
  }
  return result;
}

}  // namespace holdfast::dsl

// SPDX-License-Identifier: Apache-2.0
// Floods: a worker whose table is 80 % full of flows that carry data, and 20 times as many packets
// as the table has entries, of one kind. None of those flows may move, although the backends
// changed under them. Meanwhile the real clients go on, and new ones come. Times of packets are
// simulated; what a packet costs is measured.
#include <fmt/core.h>
#include <time.h>

#include <functional>
#include <memory>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "bench/flood_bed.h"
#include "bench/groups.h"

namespace holdfast::bench {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kClients = 1'000'000;
constexpr std::uint64_t kCapacity = 1'250'000;
constexpr std::uint64_t kStrangers = std::uint64_t{1} << 32;  // the first one's number
constexpr std::uint64_t kFirstNewcomer = std::uint64_t{1} << 33;
constexpr std::uint64_t kNewcomerCount = 1000;
constexpr Instant kRoundTrip = 50ms;
constexpr Instant kPace = 10s;  // between two packets of a real client

struct Flood {
  std::string name;
  /// The i-th packet of the flood.
  std::function<rte_mbuf*(std::uint64_t)> packet;
  bool fills_table = false;  // with entries that the next flood must not find
};

double cpu_nanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

/// New real clients: each sends a SYN, a round trip later an ACK with its request behind it, then
/// data at a client's pace, the last after a minute.
class Newcomers {
 public:
  /// They come evenly spread over `duration`.
  Newcomers(FloodBed& bed, std::uint64_t first, Instant duration)
      : bed_(bed), first_(first), home_(kNewcomerCount, kNoBackend) {
    for (std::uint64_t i = 0; i < kNewcomerCount; ++i)
      steps_.push({bed.time() + duration * i / kNewcomerCount, i, 0});
  }

  [[nodiscard]] bool done() const { return steps_.empty(); }
  /// Adds a packet to `burst` if one is due.
  bool add_due(std::vector<rte_mbuf*>& burst) {
    if (steps_.empty() || steps_.top().at > bed_.time()) return false;
    Step step = steps_.top();
    steps_.pop();
    const std::uint64_t client = first_ + step.newcomer;
    if (step.number == 1) after_round_trip_ += bed_.is_recorded(client);
    if (step.number == kLast)
      kept_ += home_[step.newcomer] != kNoBackend && bed_.is_recorded(client);
    rte_mbuf* const mbuf = step.number == 0   ? bed_.syn(client)
                           : step.number == 1 ? bed_.ack(client)
                                              : bed_.data(client);
    burst.push_back(mbuf);
    sent_.push_back({mbuf, step});
    if (step.number == kLast) return true;
    if (step.number == 0) step.at += kRoundTrip;
    if (step.number >= 2) step.at += kPace;
    ++step.number;
    steps_.push(step);
    return true;
  }
  /// After the poll of the packets that add_due() added.
  void take_note() {
    for (const auto& [mbuf, step] : sent_) {
      BackendNumber& home = home_[step.newcomer];
      if (step.number == 0) {
        home = FloodBed::went_to(*mbuf);
        at_once_ += bed_.is_recorded(first_ + step.newcomer);
      } else if (home != kNoBackend && FloodBed::went_to(*mbuf) != home) {
        home = kNoBackend;
        if (step.number == kLast) --kept_;
      }
    }
    sent_.clear();
  }

  [[nodiscard]] double share_at_once() const { return share(at_once_); }
  [[nodiscard]] double share_after_round_trip() const { return share(after_round_trip_); }
  [[nodiscard]] double share_kept() const { return share(kept_); }

 private:
  static constexpr int kLast = 8;  // SYN, ACK, request, six more: 60 s after the SYN

  struct Step {
    Instant at;
    std::uint64_t newcomer;
    int number;
    bool operator<(const Step& other) const { return at > other.at; }  // the earliest on top
  };
  static double share(std::uint64_t count) {
    return static_cast<double>(count) / static_cast<double>(kNewcomerCount);
  }

  FloodBed& bed_;
  std::uint64_t first_;
  std::priority_queue<Step> steps_{};
  std::vector<std::pair<rte_mbuf*, Step>> sent_{};
  std::vector<BackendNumber> home_;  // kNoBackend: not known yet, or it was moved
  std::uint64_t at_once_ = 0;
  std::uint64_t after_round_trip_ = 0;
  std::uint64_t kept_ = 0;
};

/// Nanoseconds a packet of the first clients' data, in an order that no cache likes.
std::vector<double> time_hits(FloodBed& bed) {
  constexpr std::uint64_t kSlice = 1 << 18;
  Stride order(bed.clients());
  std::array<rte_mbuf*, Burst::kCapacity> burst{};
  std::vector<double> result;
  for (int slice = 0; slice < 5; ++slice) {
    const double start = cpu_nanoseconds();
    for (std::uint64_t sent = 0; sent < kSlice; sent += burst.size()) {
      for (rte_mbuf*& mbuf : burst) mbuf = bed.data(order.next());
      bed.poll(burst);
    }
    if (slice > 0) result.push_back((cpu_nanoseconds() - start) / kSlice);  // the first warms up
  }
  return result;
}

struct Result {
  std::uint64_t moved = 0;
  std::vector<double> nanoseconds{};  // a packet, by tenths of the flood
};

/// `packets` of the flood at `rate` a second. The first clients go on at their pace, and newcomers
/// come.
Result run_flood(FloodBed& bed, const Flood& flood, std::uint64_t packets, double rate,
                 Newcomers& newcomers) {
  Result result;
  Stride order(bed.clients());
  std::vector<rte_mbuf*> burst;
  std::vector<std::uint64_t> clients;
  const double clients_a_second =
      static_cast<double>(bed.clients()) / std::chrono::duration<double>(kPace).count();
  const Instant begin = bed.time();
  double due = 0;
  std::uint64_t sent = 0;
  for (int tenth = 1; tenth <= 10; ++tenth) {
    const double start = cpu_nanoseconds();
    const std::uint64_t sent_before = sent;
    while (sent < packets * static_cast<std::uint64_t>(tenth) / 10) {
      burst.clear();
      clients.clear();
      for (due += clients_a_second * Burst::kCapacity / rate; due >= 1; --due)
        clients.push_back(order.next());
      for (const std::uint64_t client : clients) burst.push_back(bed.data(client));
      while (burst.size() < Burst::kCapacity / 2 && newcomers.add_due(burst)) {
      }
      while (burst.size() < Burst::kCapacity) burst.push_back(flood.packet(sent++));
      bed.poll(burst);
      for (std::size_t i = 0; i < clients.size(); ++i)
        result.moved += FloodBed::went_to(*burst[i]) != bed.home_of(clients[i]);
      newcomers.take_note();
      const std::chrono::duration<double> flooding{static_cast<double>(sent) / rate};
      bed.pass(begin + std::chrono::duration_cast<Instant>(flooding) - bed.time());
    }
    result.nanoseconds.push_back((cpu_nanoseconds() - start) /
                                 static_cast<double>(sent - sent_before));
  }
  return result;
}

/// After the flood: time goes on until the last newcomer's minute is over.
void calm(FloodBed& bed, Newcomers& newcomers) {
  std::vector<rte_mbuf*> burst;
  while (!newcomers.done()) {
    burst.clear();
    while (burst.size() < Burst::kCapacity && newcomers.add_due(burst)) {
    }
    bed.poll(burst);
    newcomers.take_note();
    if (burst.size() < Burst::kCapacity) bed.pass(10ms);
  }
}

/// The packets of a flood whose i-th packet is about tuple `tuple(i)`.
std::function<rte_mbuf*(std::uint64_t)> packets_of(
    const Template& shape, std::function<std::uint64_t(std::uint64_t)> tuple) {
  return [packets = std::make_shared<Packets>(shape), tuple = std::move(tuple)](std::uint64_t i) {
    return packets->of(tuple(i));
  };
}

std::vector<Flood> all_floods() {
  const auto strange = [](std::uint64_t i) { return kStrangers + i; };
  const auto in_pairs = [](std::uint64_t i) { return kStrangers + i / 2; };
  const auto live = [order = Stride(kClients)](std::uint64_t) mutable { return order.next(); };
  const auto tcp = [](std::uint8_t flags) { return Template::tcp(Family::ipv4, flags); };
  const auto syn_or_ack = [syn = packets_of(tcp(TcpHeader::kSyn), in_pairs),
                           ack = packets_of(tcp(TcpHeader::kAck), in_pairs)](std::uint64_t i) {
    return i % 2 == 0 ? syn(i) : ack(i);
  };
  return {
      {"SYN", packets_of(tcp(TcpHeader::kSyn), strange), true},
      {"UDP", packets_of(Template::udp(Family::ipv4), strange), true},
      {"ACK", packets_of(tcp(TcpHeader::kAck), strange), true},
      {"SYN then ACK", syn_or_ack, true},
      {"fragments without first ones", packets_of(Template::fragment(), strange)},
      {"ICMP errors about strangers", packets_of(Template::icmp_error(), strange)},
      {"ICMP errors about live flows", packets_of(Template::icmp_error(), live)},
      {"forged RST on live flows", packets_of(tcp(TcpHeader::kRst), live)},
      {"forged SYN on live flows", packets_of(tcp(TcpHeader::kSyn), live)},
  };
}

/// `first_newcomer`: of clients that the bed has not seen.
void measure(Report& report, FloodBed& bed, const Flood& flood, std::uint64_t packets,
             unsigned mpps, std::uint64_t first_newcomer) {
  const double rate = mpps * 1e6;
  const Spread hit = Spread::of(time_hits(bed));
  const std::chrono::duration<double> duration{static_cast<double>(packets) / rate};
  Newcomers newcomers(bed, first_newcomer, std::chrono::duration_cast<Instant>(duration));
  Result result = run_flood(bed, flood, packets, rate, newcomers);
  bed.bring_back();  // so that only those whose entry held stay
  result.moved += bed.count_moved();
  calm(bed, newcomers);

  const std::string name = fmt::format("flood/{}, {} Mpps/", flood.name, mpps);
  const Spread cost = Spread::of(result.nanoseconds);
  report.add(name + "proven flows moved", static_cast<double>(result.moved), "flows", at_most(0));
  report.add({name + "a packet", cost, "ns cpu"});
  report.add({name + "a packet to a hit",
              {cost.median / hit.median, cost.min / hit.median, cost.max / hit.median},
              "ratio"});
  report.add(name + "new clients with an entry at once", newcomers.share_at_once(), "share");
  report.add(name + "new clients with an entry a round trip later",
             newcomers.share_after_round_trip(), "share");
  report.add(name + "new clients kept for 60 s", newcomers.share_kept(), "share");
}

/// What the floods' clients would suffer without a flow table.
void add_what_is_at_stake(Report& report, FloodBed& bed) {
  report.add("flood/slots moved by adding 5 backends to 100 and removing 2",
             bed.share_of_slots_moved(), "share", at_least(0.01));
  report.add("flood/proven flows that would move without an entry", bed.share_held_by_entries(),
             "share", at_least(0.01));
}

}  // namespace

void run_floods(Report& report, const Options& options) {
  const std::uint64_t packets = kCapacity * (options.quick ? 2 : 20);
  std::unique_ptr<FloodBed> bed;
  std::uint64_t newcomer = kFirstNewcomer;
  for (const Flood& flood : all_floods()) {
    for (const unsigned mpps : {10U, 1U}) {
      if (options.quick && mpps == 1) continue;
      if (!bed) {
        bed = std::make_unique<FloodBed>(kCapacity, kClients);
        if (newcomer == kFirstNewcomer) add_what_is_at_stake(report, *bed);
      }
      measure(report, *bed, flood, packets, mpps, newcomer);
      newcomer += kNewcomerCount;
      if (flood.fills_table) bed.reset();
    }
  }
}

}  // namespace holdfast::bench

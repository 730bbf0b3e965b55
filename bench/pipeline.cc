// SPDX-License-Identifier: Apache-2.0
// The pipeline from parse to encapsulated, beside the bare loop: hits by number of flows, and at a
// million flows what other packets cost, and what a hit costs without this or that.
#include <fmt/core.h>

#include <stdexcept>
#include <string>

#include "bench/bare_loop.h"
#include "bench/groups.h"
#include "bench/lanes.h"
#include "lb/worker.h"
#include "lb/worker_counters.h"

namespace holdfast::bench {
namespace {

constexpr std::uint64_t kSlice = 1 << 18;  // packets
constexpr std::uint64_t kMillion = 1'000'000;
constexpr std::uint64_t kStrangers = std::uint64_t{1} << 30;  // clients that no race has opened

constexpr std::uint64_t capacity_for(std::uint64_t flows) { return flows * 5 / 4; }

std::string count_text(std::uint64_t count) {
  return count >= kMillion ? fmt::format("{}M", count / kMillion)
                           : fmt::format("{}k", count / 1000);
}

/// A pipeline with `flows` proven flows, all of which it keeps being sent packets of.
struct Lane {
  Lane(const Snapshot& snapshot, const Template& packet, std::uint64_t flows)
      : clients(packet, flows), stages(snapshot, capacity_for(flows)) {
    stages.prove(clients, flows);
    missed = stages.misses();
  }
  std::uint64_t run(Stage until = Stage::encapsulate) { return stages.run(clients, kSlice, until); }
  void check() const {
    if (stages.misses() != missed) throw std::runtime_error("a packet of an open flow missed");
  }

  Clients clients;
  Stages stages;
  std::uint64_t missed = 0;
};

/// Hits at one number of flows, beside the bare loop.
void hits(Report& report, const Options& options, const Snapshot& snapshot, std::uint64_t flows) {
  const auto ack = Template::tcp(Family::ipv4, TcpHeader::kAck);
  Clients generated(ack, flows);
  Clients bare_clients(ack, flows);
  BareLoop bare(snapshot, capacity_for(flows));
  for (std::uint64_t i = 0; i < flows; ++i) bare.learn(*bare_clients());
  Lane ours(snapshot, ack, flows);

  const auto generate = [&] {
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < kSlice; ++i) sum += generated()->data_len;
    keep(sum);
    return kSlice;
  };
  const std::vector<Timing> timings =
      race({{"generated", generate},
            {"parsed", [&] { return ours.run(Stage::parse); }},
            {"classified", [&] { return ours.run(Stage::classify); }},
            {"placed", [&] { return ours.run(Stage::pick_backend); }},
            {"encapsulated", [&] { return ours.run(); }},
            {"bare loop", [&] { return bare.run(bare_clients, kSlice); }}},
           options.rounds());
  ours.check();
  const std::string prefix = "hit/" + count_text(flows);
  add_times(report, prefix, timings);
  std::optional<Goal> goal;
  if (flows == 1000) goal = at_most(2.0);
  if (flows >= kMillion) goal = at_most(1.25);
  report.add({prefix + "/to bare loop", Spread::of(ratios(timings[4], timings[5])), "ratio", goal});
}

/// Other packets and other ways, beside hits of IPv4 TCP.
void others(Report& report, const Options& options, const Snapshot& snapshot) {
  const auto ack = Template::tcp(Family::ipv4, TcpHeader::kAck);
  const auto syn = Template::tcp(Family::ipv4, TcpHeader::kSyn);
  const auto rst = Template::tcp(Family::ipv4, TcpHeader::kRst);
  Lane hit(snapshot, ack, kMillion);
  Lane ageless(snapshot, ack, kMillion);
  ageless.stages.tick = {};
  Lane ipv6(snapshot, Template::tcp(Family::ipv6, TcpHeader::kAck), kMillion);
  const auto by_gue = make_snapshot({.encapsulation = Encapsulation::gue});
  const auto by_gue6 = make_snapshot({.tunnel = Family::ipv6, .encapsulation = Encapsulation::gue});
  Lane gue(*by_gue, ack, kMillion);
  Lane gue6(*by_gue6, ack, kMillion);
  Lane unequal(snapshot, ack, kMillion);
  UnequalClients unequal_clients(ack, kMillion);
  Lane udp(snapshot, Template::udp(Family::ipv4), kMillion);
  // What its flows leave free is taken by embryonic ones before the race begins.
  Lane full(snapshot, ack, kMillion);
  Clients syns(syn, 1 << 24, kStrangers);
  full.stages.run(syns, 2 * kMillion);
  Clients resets(rst, 1 << 24, 2 * kStrangers);

  Lane whole_lane(snapshot, ack, kMillion);
  MemoryIo io(whole_lane.clients);
  WorkerCounters counters;
  Worker worker({.io = io, .flows = whole_lane.stages.flows(), .counters = counters});
  Instant time = whole_lane.stages.time();
  const auto whole = [&] {
    for (std::uint64_t done = 0; done < kSlice; time += 32 * kPacketTime)
      done += worker.poll_once(snapshot, time);
    return kSlice;
  };

  const std::vector<Timing> timings = race(
      {{"IPv4 TCP hit", [&] { return hit.run(); }},
       {"hit without ages", [&] { return ageless.run(); }},
       {"hit with counters, sweep and transmission", whole},
       {"hit, clients by Zipf's law", [&] { return unequal.stages.run(unequal_clients, kSlice); }},
       {"IPv6 hit", [&] { return ipv6.run(); }},
       {"UDP hit", [&] { return udp.run(); }},
       {"new flow", [&] { return full.stages.run(syns, kSlice); }},
       {"miss", [&] { return hit.stages.run(resets, kSlice); }},
       {"GUE hit", [&] { return gue.run(); }},
       {"GUE hit over IPv6, with a checksum", [&] { return gue6.run(); }}},
      options.rounds());
  ageless.check();
  unequal.check();
  ipv6.check();
  udp.check();
  gue.check();
  gue6.check();
  if (io.freed + io.given_to_kernel != 0) throw std::runtime_error("the worker dropped packets");

  const std::optional<Goal> goals[] = {{}, {},           {}, {},           at_most(1.3),
                                       {}, at_most(3.0), {}, at_most(1.2), {}};
  add_times(report, "other/1M", timings);
  for (std::size_t i = 1; i < timings.size(); ++i)
    report.add({"other/1M/" + timings[i].name + " to hit",
                Spread::of(ratios(timings[i], timings[0])), "ratio", goals[i]});
}

}  // namespace

void run_pipeline(Report& report, const Options& options) {
  const auto snapshot = make_snapshot();
  for (const std::uint64_t flows : {std::uint64_t{1000}, kMillion / 10, kMillion, 10 * kMillion})
    hits(report, options, *snapshot, flows);
  others(report, options, *snapshot);
}

}  // namespace holdfast::bench

// SPDX-License-Identifier: Apache-2.0
// Large sites: what it takes to load one (parse, number, build tables, publish), in time and
// memory, and what forwarding for it costs beside forwarding for a small one.
#include <fmt/core.h>
#include <malloc.h>
#include <time.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/groups.h"
#include "bench/running_worker.h"
#include "bench/scale_site.h"
#include "lb/snapshot_slot.h"

namespace holdfast::bench {
namespace {

constexpr SiteSize kLarge{10'000, 1'000, 10'000};
constexpr std::uint64_t kSlice = 1 << 17;  // packets

double seconds_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// CPU and wall milliseconds of a step, one sample a call.
class Step {
 public:
  explicit Step(std::string name) : name_(std::move(name)) {}

  void take(const std::function<void()>& work) {
    const double wall = seconds_of(CLOCK_MONOTONIC);
    const double cpu = seconds_of(CLOCK_THREAD_CPUTIME_ID);
    work();
    cpu_.push_back((seconds_of(CLOCK_THREAD_CPUTIME_ID) - cpu) * 1e3);
    wall_.push_back((seconds_of(CLOCK_MONOTONIC) - wall) * 1e3);
  }
  void add_to(Report& report, const std::string& prefix) const {
    report.add({prefix + "/" + name_, Spread::of(cpu_), "ms cpu"});
    report.add({prefix + "/" + name_ + "/wall", Spread::of(wall_), "ms"});
  }

 private:
  std::string name_;
  std::vector<double> cpu_;
  std::vector<double> wall_;
};

/// Of this process, on the heap.
double heap_megabytes() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd) / (1 << 20);
}

void add_load(Report& report, const SiteSize& size, int repeats) {
  Step parse("parse and check");
  Step follow("give numbers");
  Step first("reconcile, all tables new");
  Step again("reconcile, nothing new");
  Step drain("reconcile, one drain");
  Step publish("publish and reclaim");
  double heap = 0;
  const std::string text = site_text(size);
  for (int i = 0; i < repeats; ++i) {
    const double before = heap_megabytes();
    Site site;
    SnapshotSlot slot(1);
    parse.take([&] { site.parse(text); });
    follow.take([&] { site.follow(); });
    first.take([&] { site.reconcile(); });
    heap = heap_megabytes() - before;
    again.take([&] { site.reconcile(); });
    site.drain_first(true);
    drain.take([&] { site.reconcile(); });
    slot.publish(site.take_snapshot());
    site.drain_first(false);
    site.reconcile();
    publish.take([&] {
      slot.publish(site.take_snapshot());
      slot.reclaim();
    });
  }
  const std::string prefix = "scale/" + size.text();
  for (const Step* step : {&parse, &follow, &first, &again, &drain, &publish})
    step->add_to(report, prefix);
  report.add(prefix + "/configuration text", static_cast<double>(text.size()) / (1 << 20), "MiB");
  report.add(prefix + "/heap", heap, "MiB");
}

std::unique_ptr<const Snapshot> snapshot_of(const SiteSize& size) {
  Site site;
  site.parse(site_text(size));
  site.follow();
  site.reconcile();
  return site.take_snapshot();
}

/// Hits for small and large sites, in one race.
void add_forwarding(Report& report, const Options& options, std::uint64_t flows) {
  struct Case {
    std::string name;
    std::shared_ptr<const Snapshot> snapshot;
    unsigned services_used;
    std::unique_ptr<RunningWorker> worker{};
  };
  const std::shared_ptr<const Snapshot> large = snapshot_of(kLarge);
  constexpr SiteSize kOneWide{1, 1, 10'000};
  std::vector<Case> cases;
  cases.push_back({"1 service, 10 backends", snapshot_of({1, 1, 10}), 1});
  cases.push_back({"1 service, 10000 backends", snapshot_of(kOneWide), 1});
  cases.push_back({"1 of 10000 services", large, 1});
  cases.push_back({"10000 services, 10000 backends", large, kLarge.services});
  std::vector<Contender> contenders;
  for (Case& one : cases) {
    one.worker = std::make_unique<RunningWorker>(flows, site_vips(one.services_used));
    one.worker->settle(*one.snapshot);
    contenders.push_back({one.name, [&one] { return one.worker->run(*one.snapshot, kSlice); }});
  }
  const auto timings = race(contenders, options.rounds());
  for (const Case& one : cases) one.worker->require_hits("scale");
  const std::string prefix = fmt::format("scale/forward {} flows", flows);
  add_times(report, prefix, timings);
  for (std::size_t i = 1; i < timings.size(); ++i)
    report.add({fmt::format("{}/{} to {}", prefix, timings[i].name, timings[0].name),
                Spread::of(ratios(timings[i], timings[0])), "ratio"});
}

/// Runs `worker` on another thread while it is told to.
class Neighbour {
 public:
  Neighbour(RunningWorker& worker, const Snapshot& snapshot)
      : thread_([this, &worker, &snapshot] {
          while (!ended_.load(std::memory_order_relaxed)) {
            busy_.wait(false, std::memory_order_relaxed);
            static_cast<void>(worker.run(snapshot, 1024));
          }
        }) {}
  Neighbour(const Neighbour&) = delete;
  Neighbour& operator=(const Neighbour&) = delete;
  ~Neighbour() {
    ended_.store(true, std::memory_order_relaxed);
    work(true);
    thread_.join();
  }
  void work(bool busy) {
    busy_.store(busy, std::memory_order_relaxed);
    busy_.notify_one();
  }

 private:
  std::atomic<bool> busy_{false};
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

/// A worker alone, and beside another one that shares nothing but the snapshot.
void add_workers(Report& report, const Options& options, std::uint64_t flows) {
  const auto snapshot = snapshot_of({100, 10, 100});
  const auto vips = site_vips(100);
  RunningWorker one(flows, vips);
  RunningWorker other(flows, vips);
  one.settle(*snapshot);
  other.settle(*snapshot);
  std::vector<Timing> timings;
  {
    Neighbour neighbour(other, *snapshot);
    const auto slice = [&](bool beside) {
      return [&, beside] {
        neighbour.work(beside);
        const std::uint64_t done = one.run(*snapshot, kSlice);
        neighbour.work(false);
        return done;
      };
    };
    timings = race({{"alone", slice(false)}, {"beside another", slice(true)}}, options.rounds());
  }
  one.require_hits("scale");
  other.require_hits("scale");
  const std::string prefix = fmt::format("scale/one worker, {} flows", flows);
  add_times(report, prefix, timings);
  report.add(
      {prefix + "/beside another to alone", Spread::of(ratios(timings[1], timings[0])), "ratio"});
}

}  // namespace

void run_scale(Report& report, const Options& options) {
  for (const SiteSize& size :
       {SiteSize{100, 10, 100}, SiteSize{1'000, 100, 1'000}, SiteSize{10'000, 100, 1'000},
        SiteSize{1'000, 1'000, 1'000}, SiteSize{1'000, 100, 10'000}, SiteSize{1, 1, 10'000}})
    if (!options.quick) add_load(report, size, 5);
  add_load(report, kLarge, options.quick ? 1 : 3);
  add_forwarding(report, options, 100'000);
  if (!options.quick) add_forwarding(report, options, 1'000'000);
  add_workers(report, options, 100'000);
}

}  // namespace holdfast::bench

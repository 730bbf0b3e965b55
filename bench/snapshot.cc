// SPDX-License-Identifier: Apache-2.0
// What publishing costs the pipeline: a worker forwards, by a reader of the snapshot slot as in the
// daemon, while a control thread publishes a new snapshot every 100 ms or does not.
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "bench/groups.h"
#include "bench/running_worker.h"
#include "bench/scale_site.h"
#include "lb/snapshot_slot.h"

namespace holdfast::bench {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPeriod{100};
constexpr SiteSize kSize{100, 10, 1'000};

/// The control plane's part: reconciles and publishes in time while it is told to, else sleeps.
class Publisher {
 public:
  Publisher(Site& site, SnapshotSlot& slot)
      : site_(site), slot_(slot), thread_([this] { run(); }) {}
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;
  ~Publisher() {
    ended_.store(true, std::memory_order_relaxed);
    thread_.join();
  }
  void publish(bool wanted) { publishes_.store(wanted, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t published() const {
    return published_.load(std::memory_order_relaxed);
  }

 private:
  void run() {
    bool drained = false;
    auto due = steady_clock::now();
    while (!ended_.load(std::memory_order_relaxed)) {
      due += kPeriod;
      std::this_thread::sleep_until(due);
      slot_.reclaim();
      if (!publishes_.load(std::memory_order_relaxed)) continue;
      // One backend goes out or comes back, so that there is a new table each time.
      site_.drain_first(drained = !drained);
      site_.reconcile();
      slot_.publish(site_.take_snapshot());
      published_.fetch_add(1, std::memory_order_relaxed);
    }
  }

  Site& site_;
  SnapshotSlot& slot_;
  std::atomic<bool> publishes_{false};
  std::atomic<bool> ended_{false};
  std::atomic<std::uint64_t> published_{0};
  std::thread thread_;  // last: it uses the others
};

/// The median and its 95 % interval, by 2000 resamples. Not the mean: one slice in which the
/// machine did something else would weigh more than all others.
Spread median_interval(const std::vector<double>& samples) {
  std::mt19937 random(1);
  std::uniform_int_distribution<std::size_t> pick(0, samples.size() - 1);
  std::vector<double> medians(2000);
  for (double& median : medians) {
    std::vector<double> again(samples.size());
    for (double& sample : again) sample = samples[pick(random)];
    median = Spread::of(std::move(again)).median;
  }
  std::sort(medians.begin(), medians.end());
  return {.median = Spread::of(samples).median,
          .min = medians[medians.size() / 40],
          .max = medians[medians.size() - 1 - medians.size() / 40]};
}

}  // namespace

void run_snapshot(Report& report, const Options& options) {
  Site site;
  site.parse(site_text(kSize));
  site.follow();
  site.reconcile();
  SnapshotSlot slot(1);
  SnapshotSlot::Reader reader = slot.reader(0);
  RunningWorker worker(100'000, site_vips(kSize.services));
  worker.settle(site.snapshot());
  slot.publish(site.take_snapshot());
  reader.online();

  std::vector<Timing> timings;
  std::uint64_t published = 0;
  {
    Publisher publisher(site, slot);
    // One publication falls into each.
    const auto slice = [&](bool publishing) {
      return [&, publishing] {
        publisher.publish(publishing);
        const auto end = steady_clock::now() + kPeriod;
        std::uint64_t done = 0;
        while (steady_clock::now() < end)
          done += worker.run(
              [&]() -> const Snapshot& {
                reader.quiescent();
                return reader.read();
              },
              1 << 14);
        publisher.publish(false);
        return done;
      };
    };
    RaceOptions rounds = options.rounds();
    rounds.rounds = options.quick ? 30 : 150;
    timings = race({{"none published", slice(false)}, {"every 100 ms", slice(true)}}, rounds);
    published = publisher.published();
  }
  reader.offline();
  worker.require_hits("snapshot");
  if (published < timings[0].cpu.size())
    throw std::runtime_error("snapshot: nothing was published");

  add_times(report, "snapshot", timings);
  std::vector<double> differences;
  for (const double ratio : ratios(timings[1], timings[0]))
    differences.push_back(100 * (ratio - 1));
  const Spread interval = median_interval(differences);
  report.add({"snapshot/difference, median and its 95 % interval", interval, "%"});
  report.add("snapshot/difference, upper end of the interval", interval.max, "%", at_most(3));
  report.add("snapshot/published", static_cast<double>(published), "times");
}

}  // namespace holdfast::bench

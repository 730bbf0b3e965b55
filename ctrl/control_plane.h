// SPDX-License-Identifier: Apache-2.0
// The control plane of one daemon: it owns the loop, the state of all backends, the checks, the
// next hops and the CLI's socket, and publishes a snapshot whenever something that workers must
// know changed. With [bgp] it has the VIPs announced, and stops in an order that loses no packet.
// Built by the program's main before workers start; run() is the control thread. All methods are
// for that thread, except stop().
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "ctrl/announce/announce_shell.h"
#include "ctrl/announce/speaker.h"
#include "ctrl/announce/stop_order.h"
#include "ctrl/announce/wanted.h"
#include "ctrl/check/checker.h"
#include "ctrl/drop_rates.h"
#include "ctrl/events.h"
#include "ctrl/loop/helper_thread.h"
#include "ctrl/loop/loop.h"
#include "ctrl/netlink/next_hop_watch.h"
#include "ctrl/path_mtu/path_mtu_watch.h"
#include "ctrl/path_mtu/tunnels.h"
#include "ctrl/reconcile/reconcile.h"
#include "ctrl/reconcile/runtime.h"
#include "ctrl/server/server.h"
#include "ctrl/state/backend_state.h"
#include "ctrl/worker_pulse.h"
#include "lib/base/result.h"
#include "lib/config/config.h"
#include "lib/model/seam.h"

namespace holdfast {

class ControlPlane {
 public:
  /// Changes within this time become one snapshot.
  static constexpr std::chrono::milliseconds kCoalesce{10};
  /// For this long after the start, routes that an earlier run left in the speaker may stay while
  /// workers begin: no shorter than for first checks, so that no route goes and comes again.
  static constexpr std::chrono::seconds kStarting = kFirstChecks;

  /// Connects to the BGP speaker at a target in gRPC's notation.
  using SpeakerFactory =
      std::function<std::unique_ptr<BgpSpeaker>(Loop& loop, const std::string& target)>;

  /// Listens on the CLI's socket, reads routes and neighbours once, and publishes the first
  /// snapshot, all before it returns: call it before workers start. `ports` in the order of the
  /// config. `sink`, `stats` and `flows` must outlive the control plane. `make_speaker` is called
  /// once if there is a [bgp]; without a speaker nothing is announced. Refuses with one sentence.
  [[nodiscard]] static Result<std::unique_ptr<ControlPlane>> start(
      Config config, HashSeed seed, SnapshotSink& sink, const StatsSource& stats,
      const FlowQueries& flows, std::vector<PortDescription> ports,
      const SpeakerFactory& make_speaker = {});
  /// Requires: run() has returned, or was never called.
  ~ControlPlane();
  ControlPlane(const ControlPlane&) = delete;
  ControlPlane& operator=(const ControlPlane&) = delete;

  /// The control thread's work until stop().
  void run();
  /// Ends run() in the order of StopOrder: with VIPs announced this takes a while. A second call
  /// skips the waits.
  void stop_in_order();
  /// Ends run() now. Any thread; safe in a signal handler.
  void stop() { loop_.stop(); }

  // What commands see and do.

  /// What the workers have got.
  struct Published {
    std::uint64_t generation = 0;
    Instant at{};
    std::vector<PoolReport> pools{};  // in the order of the config
  };
  [[nodiscard]] const Published& published() const { return published_; }
  [[nodiscard]] const Config& config() const { return *config_; }
  [[nodiscard]] std::shared_ptr<const Config> shared_config() const { return config_; }
  [[nodiscard]] const RuntimeState& state() const { return state_; }
  [[nodiscard]] const StatsSource& stats() const { return stats_; }
  [[nodiscard]] const FlowQueries& flows() const { return flows_; }
  [[nodiscard]] const DropRates& drop_rates() const { return drop_rates_; }
  [[nodiscard]] const PathMtuCounters& path_mtu_counters() const { return path_mtus_.counters(); }
  [[nodiscard]] const WorkerPulse& pulse() const { return pulse_; }
  [[nodiscard]] HashSeed seed() const { return seed_; }
  [[nodiscard]] Instant started() const { return started_; }
  [[nodiscard]] Loop& loop() { return loop_; }
  [[nodiscard]] Events& events() { return events_; }
  /// Which VIPs are to be announced, and why not.
  [[nodiscard]] WantedVips wanted() const;
  /// Null: there is no [bgp].
  [[nodiscard]] const Announcer* announcer() const;
  /// Why the data plane can not forward; empty: it can.
  [[nodiscard]] const std::string& data_plane_trouble() const { return data_plane_trouble_; }
  /// What a daemon that stops is doing; empty: it does not stop.
  [[nodiscard]] std::string stopping() const;

  /// Has `work` run in the helper thread, for what would hold the loop for too long, and then
  /// `done` in the control thread. `work` must not throw, nor look at what the loop changes
  /// meanwhile, nor be the last to hold what must end in the control thread.
  void run_aside(std::function<void()> work, Loop::Callback done);
  /// The same for one slice of work that comes in very many: whoever asks for the next one in
  /// `done` takes turns with the others that do, and only one slice at a time is before other work.
  void run_slice_aside(std::function<void()> work, Loop::Callback done);
  /// Has `make` run in the helper thread, for a text that would hold the loop for too long, and
  /// then `take` with that text in the control thread. `make` must not throw, nor look at what the
  /// loop changes meanwhile.
  void make_aside(std::function<std::string()> make, std::function<void(std::string)> take);

  /// Starts the drain of each, or changes the deadline of one that runs. `published` is called when
  /// the workers have got it: from then on no new flow goes there.
  void drain(std::span<const MembershipKey> memberships,
             std::optional<std::chrono::milliseconds> timeout, Loop::Callback published);
  void enable(std::span<const MembershipKey> memberships, Loop::Callback published);
  /// Replaces the configured weight of each until the daemon ends; the configured one itself ends
  /// that. Requires: weight <= kMaxWeight, and each is in the configuration.
  void set_weight(std::span<const MembershipKey> memberships, std::uint32_t weight,
                  Loop::Callback published);

 private:
  ControlPlane(Config config, HashSeed seed, SnapshotSink& sink, const StatsSource& stats,
               const FlowQueries& flows, std::vector<PortDescription> ports);

  /// Something that reconcile reads has changed: a snapshot follows soon.
  void changed();
  void build();
  void publish(Reconciled built);
  void run_next_slice();
  void on_check(const MembershipKey& key, const CheckOutcome& outcome);
  void listen_for_path_mtus();
  PathMtuWatch::Taken on_too_big(const OuterQuote& quote, const IpAddress& router,
                                 TokenBucket& rate);
  void sample_stats();
  void look_at_data_plane();
  void announce();
  void follow_stop_order(bool signal);
  [[nodiscard]] const BackendConfig* configured(const MembershipKey& key) const;
  [[nodiscard]] std::string subject_of(const MembershipKey& key) const;

  std::shared_ptr<const Config> config_;
  HashSeed seed_;
  SnapshotSink& sink_;
  const StatsSource& stats_;
  const FlowQueries& flows_;
  Instant started_;

  Loop loop_;
  Events events_;
  RuntimeState state_;
  std::shared_ptr<const ReconcileMemory> memory_;
  Published published_;
  DropRates drop_rates_;
  WorkerPulse pulse_;
  std::string data_plane_trouble_ = "the workers have not begun";  // empty: ready
  std::set<IpAddress> wanted_before_{};                            // VIPs, since the start
  StopOrder stop_order_;

  struct Slice {
    std::function<void()> work;
    Loop::Callback done;
  };
  std::deque<Slice> slices_{};  // for the helper thread, which has one at most
  bool slice_runs_ = false;

  Loop::TimerId build_timer_ = 0;                   // a build is due: something changed
  Loop::TimerId deadline_timer_ = 0;                // reconcile's own next deadline
  bool building_ = false;                           // the helper thread is at it
  std::vector<Loop::Callback> waiting_{};           // for the next build that starts
  std::vector<Loop::Callback> waiting_for_this_{};  // for the one that runs

  std::unique_ptr<NextHopWatch> next_hops_;
  PathMtuWatch path_mtus_;
  std::optional<Tunnels> tunnels_{};  // of what is published; made when somebody asks
  std::unique_ptr<Checker> checker_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<AnnounceShell> announce_;
  Loop::TimerId stop_timer_ = 0;          // the stop order's deadline
  std::unique_ptr<HelperThread> helper_;  // last: it ends before what its work refers to
};

}  // namespace holdfast

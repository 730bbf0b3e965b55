// SPDX-License-Identifier: Apache-2.0
#include "ctrl/control_plane.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "ctrl/command/command.h"
#include "ctrl/loop/boot_clock.h"
#include "ctrl/state_changes.h"

namespace holdfast {
namespace {

constexpr std::chrono::seconds kReclaim{1};
constexpr std::chrono::seconds kSample{1};
constexpr std::chrono::milliseconds kFirstSamples{50};  // until the data plane is ready

/// Backends whose next hops the kernel must be asked for.
std::set<IpAddress> routed_backends(const Config& config) {
  std::set<IpAddress> addresses;
  for (const auto& pool : config.pools) {
    for (const auto& backend : pool.backends) {
      if (!backend.next_hop) addresses.insert(backend.address);
    }
  }
  return addresses;
}

}  // namespace

Result<std::unique_ptr<ControlPlane>> ControlPlane::start(Config config, HashSeed seed,
                                                          SnapshotSink& sink,
                                                          const StatsSource& stats,
                                                          const FlowQueries& flows,
                                                          std::vector<PortDescription> ports,
                                                          const SpeakerFactory& make_speaker) {
  std::unique_ptr<ControlPlane> control(
      new ControlPlane(std::move(config), seed, sink, stats, flows, std::move(ports)));
  auto& self = *control;

  if (auto followed = follow_config(self.state_, *self.config_, self.started_); !followed) {
    return tl::unexpected<Error>(followed.error());
  }
  auto server = Server::listen(self.loop_, self.config_->control.socket,
                               [&self](std::string_view command, const Json& arguments,
                                       const std::shared_ptr<Reply>& reply) {
                                 run_command(self, command, arguments, reply);
                               });
  if (!server) return tl::unexpected<Error>(server.error());
  self.server_ = std::move(*server);

  if (auto routed = routed_backends(*self.config_); !routed.empty()) {
    auto watch = NextHopWatch::start(self.loop_, self.state_.ports, std::move(routed), [&self] {
      self.state_.routes = self.next_hops_->routes();
      self.changed();
    });
    if (!watch) return tl::unexpected<Error>(watch.error());
    self.next_hops_ = std::move(*watch);
    self.state_.routes = self.next_hops_->routes();
  }
  self.events_.add(
      EventKind::daemon, "holdfastd",
      fmt::format("version " HOLDFAST_VERSION " starts, site {}",
                  self.config_->site.name.empty() ? "without a name" : self.config_->site.name));
  self.listen_for_path_mtus();
  if (const auto& bgp = self.config_->bgp; bgp && make_speaker) {
    self.announce_ =
        std::make_unique<AnnounceShell>(self.loop_, make_speaker(self.loop_, bgp->gobgp),
                                        "gobgpd at " + bgp->gobgp, self.events_, [&self] {
                                          if (self.stop_order_.step() != StopOrder::Step::serving)
                                            self.follow_stop_order(false);
                                        });
  }
  self.publish(reconcile(*self.config_, self.seed_, self.state_, *self.memory_, boot_now()));
  return control;
}

ControlPlane::ControlPlane(Config config, HashSeed seed, SnapshotSink& sink,
                           const StatsSource& stats, const FlowQueries& flows,
                           std::vector<PortDescription> ports)
    : config_(std::make_shared<const Config>(std::move(config))),
      seed_(seed),
      sink_(sink),
      stats_(stats),
      flows_(flows),
      started_(boot_now()),
      memory_(std::make_shared<const ReconcileMemory>()),
      stop_order_(config_->control.linger),
      path_mtus_(loop_, [this](const OuterQuote& quote, const IpAddress& router,
                               TokenBucket& rate) { return on_too_big(quote, router, rate); }),
      helper_(std::make_unique<HelperThread>()) {
  state_.ports = std::move(ports);
  loop_.call_every(kReclaim, "freeing old snapshots", [this] { sink_.reclaim(); });
  loop_.call_every(kSample, "reading counters", [this] { sample_stats(); });
}

ControlPlane::~ControlPlane() = default;

void ControlPlane::run() {
  // Not before: workers must be there, so that the first results reach them at once.
  checker_ = std::make_unique<Checker>(
      loop_, *config_,
      [this](const MembershipKey& key, const CheckOutcome& outcome) { on_check(key, outcome); });
  sample_stats();
  look_at_data_plane();
  loop_.run();
  checker_.reset();
}

void ControlPlane::on_check(const MembershipKey& key, const CheckOutcome& outcome) {
  const auto it = state_.memberships.find(key);
  if (it == state_.memberships.end()) return;
  auto& health = it->second.health;
  const auto now = boot_now();
  const auto event = outcome.kind == CheckOutcome::Kind::passed
                         ? health.on_success(now)
                         : health.on_failure(now, outcome.why);
  if (event) changed();
}

void ControlPlane::listen_for_path_mtus() {
  std::set<Family> families;
  for (const auto& pool : config_->pools)
    for (const auto& backend : pool.backends) families.insert(backend.address.family());
  for (const Family family : families) {
    const auto listening = path_mtus_.listen(family);
    if (listening) continue;
    const bool permission = listening.error().code == "permission";
    events_.add(EventKind::daemon, "holdfastd",
                fmt::format("what routers say about the MTU on the way to backends is not heard: "
                            "{}{}",
                            listening.error().message,
                            permission ? "; run holdfastd as root or with CAP_NET_RAW" : ""),
                Severity::warning);
    return;  // the other family has the same trouble
  }
}

PathMtuWatch::Taken ControlPlane::on_too_big(const OuterQuote& quote, const IpAddress& router,
                                             TokenBucket& rate) {
  using Taken = PathMtuWatch::Taken;
  if (!tunnels_) tunnels_.emplace(*config_, published_.pools);
  const auto tunnels = tunnels_->of(quote);
  if (tunnels.empty()) return Taken::not_ours;
  const auto now = boot_now();
  if (!rate.take(now)) return Taken::rate_limited;
  Taken taken = Taken::not_believed;
  std::uint32_t needed = 0;
  for (const auto* tunnel : tunnels) {
    needed = std::max(needed, tunnel->minimum_mtu);
    if (quote.mtu < tunnel->minimum_mtu) continue;
    if (taken == Taken::not_believed) taken = Taken::known;
    if (quote.mtu > tunnel->way_mtu) continue;  // no way takes that much anyhow
    const MembershipKey key{tunnel->pool, quote.destination};
    if (state_.path_mtus.learn(key, quote.mtu, router, now)) taken = Taken::learned;
  }
  if (quote.mtu < needed && state_.path_mtus.doubt(quote.destination, now))
    events_.add(EventKind::backend, quote.destination.text(),
                fmt::format("router {} says that the path MTU is {}, but IPv6 services need {}: "
                            "not believed for their pools, look at the links on the way",
                            router.text(), quote.mtu, needed),
                Severity::warning);
  if (taken == Taken::learned) changed();
  return taken;
}

void ControlPlane::changed() {
  if (build_timer_ != 0) return;
  build_timer_ = loop_.call_after(kCoalesce, "a new snapshot", [this] {
    build_timer_ = 0;
    build();
  });
}

void ControlPlane::build() {
  if (building_) {
    changed();  // again when the helper thread is free
    return;
  }
  building_ = true;
  std::move(waiting_.begin(), waiting_.end(), std::back_inserter(waiting_for_this_));
  waiting_.clear();
  // The helper gets copies: nothing that the loop changes meanwhile is shared with it.
  helper_->run([this, config = config_, seed = seed_, state = state_, memory = memory_] {
    auto built = std::make_shared<Reconciled>(reconcile(*config, seed, state, *memory, boot_now()));
    loop_.post([this, built] {
      building_ = false;
      publish(std::move(*built));
    });
  });
}

void ControlPlane::publish(Reconciled built) {
  const auto now = boot_now();
  const auto generation = built.snapshot->generation;
  for (auto& change : state_changes(published_.pools, built.pools)) {
    events_.add(change.kind, std::move(change.subject), std::move(change.text), change.severity);
  }
  memory_ = std::make_shared<const ReconcileMemory>(std::move(built.memory));
  published_ = {.generation = generation, .at = now, .pools = std::move(built.pools)};
  tunnels_.reset();
  sink_.publish(std::move(built.snapshot));

  loop_.cancel(std::exchange(deadline_timer_, 0));
  if (built.next_deadline) {
    deadline_timer_ = loop_.call_at(*built.next_deadline, "a backend's deadline", [this] {
      deadline_timer_ = 0;
      changed();
    });
  }
  announce();
  for (auto& callback : std::exchange(waiting_for_this_, {})) callback();
}

void ControlPlane::sample_stats() {
  const auto reading = stats_.read_stats();
  const auto now = boot_now();
  DropRates::Totals totals{};
  for (const auto& worker : reading.workers) {
    for (std::size_t i = 0; i < totals.size(); ++i) totals[i] += worker.packets.dropped[i];
  }
  drop_rates_.add(now, totals);
  for (const auto& change : pulse_.add(now, reading.workers)) {
    auto worker = fmt::format("{}", change.worker);
    if (change.alive) {
      events_.add(EventKind::worker, std::move(worker), "moves again");
    } else {
      events_.add(EventKind::worker, std::move(worker),
                  fmt::format("has not moved for {} s: its flows are not forwarded",
                              WorkerPulse::kPatience.count()),
                  Severity::error);
    }
  }
  if (auto trouble = holdfast::data_plane_trouble(reading, pulse_);
      trouble != data_plane_trouble_) {
    events_.add(EventKind::daemon, "data plane",
                trouble.empty() ? "ready" : "not ready: " + trouble,
                trouble.empty() ? Severity::info : Severity::error);
    data_plane_trouble_ = std::move(trouble);
  }
  announce();
}

void ControlPlane::look_at_data_plane() {
  if (data_plane_trouble_.empty() || stop_order_.step() != StopOrder::Step::serving) return;
  loop_.call_after(kFirstSamples, "is the data plane ready", [this] {
    sample_stats();
    if (boot_now() - started_ < kStarting) look_at_data_plane();
  });
}

WantedVips ControlPlane::wanted() const {
  auto phase = AnnouncePhase::serving;
  if (stop_order_.step() != StopOrder::Step::serving) {
    phase = stop_order_.phase();
  } else if (boot_now() - started_ < kStarting) {
    phase = AnnouncePhase::starting;
  }
  return wanted_vips(*config_, published_.pools, data_plane_trouble_, phase, wanted_before_);
}

const Announcer* ControlPlane::announcer() const {
  return announce_ == nullptr ? nullptr : &announce_->announcer();
}

std::string ControlPlane::stopping() const { return stop_order_.text(boot_now()); }

void ControlPlane::announce() {
  if (announce_ == nullptr) return;
  const auto now_wanted = wanted();
  for (const auto& [vip, one] : now_wanted)
    if (one.announcement) wanted_before_.insert(vip);
  announce_->want(now_wanted);
}

void ControlPlane::stop_in_order() {
  events_.add(EventKind::daemon, "holdfastd", "stops");
  follow_stop_order(true);
}

void ControlPlane::follow_stop_order(bool signal) {
  const auto now = boot_now();
  const auto before = stop_order_.step();
  const bool unconfirmed = stop_order_.not_withdrawn();
  if (signal) stop_order_.request(now);
  stop_order_.update(announce_ != nullptr ? announcer()->anything_announced() : Presence::absent,
                     announce_ != nullptr && announcer()->link().up(), now);
  loop_.cancel(std::exchange(stop_timer_, 0));
  if (const auto deadline = stop_order_.deadline()) {
    stop_timer_ = loop_.call_at(*deadline, "stopping", [this] {
      stop_timer_ = 0;
      follow_stop_order(false);
    });
  }
  const auto step = stop_order_.step();
  if (step != before || (unconfirmed && !stop_order_.not_withdrawn())) {
    if (before == StopOrder::Step::withdrawing && stop_order_.not_withdrawn())
      events_.add(EventKind::announcement, "all VIPs",
                  "the withdrawal is not confirmed: routers may go on sending here",
                  Severity::error);
    events_.add(EventKind::daemon, "holdfastd", "stopping: " + stop_order_.text(now));
    if (announce_ != nullptr && stop_order_.phase() == AnnouncePhase::withdrawn) announce_->leave();
    announce();
  }
  if (step == StopOrder::Step::done) loop_.stop();
}

void ControlPlane::run_aside(std::function<void()> work, Loop::Callback done) {
  // `done` wanders through the helper thread, but no copy of it is left to be destroyed there.
  helper_->run([this, work = std::move(work), done = std::move(done)]() mutable {
    work();
    loop_.post(std::move(done));
  });
}

void ControlPlane::run_slice_aside(std::function<void()> work, Loop::Callback done) {
  slices_.push_back({std::move(work), std::move(done)});
  if (!slice_runs_) run_next_slice();
}

void ControlPlane::run_next_slice() {
  slice_runs_ = !slices_.empty();
  if (!slice_runs_) return;
  Slice slice = std::move(slices_.front());
  slices_.pop_front();
  run_aside(std::move(slice.work), [this, done = std::move(slice.done)] {
    run_next_slice();
    done();
  });
}

void ControlPlane::make_aside(std::function<std::string()> make,
                              std::function<void(std::string)> take) {
  const auto text = std::make_shared<std::string>();
  run_aside([make = std::move(make), text] { *text = make(); },
            [take = std::move(take), text] { take(std::move(*text)); });
}

void ControlPlane::drain(std::span<const MembershipKey> memberships,
                         std::optional<std::chrono::milliseconds> timeout,
                         Loop::Callback published) {
  const auto now = boot_now();
  const auto until = timeout ? fmt::format("flows that are left after {:.1f} s move",
                                           std::chrono::duration<double>(*timeout).count())
                             : std::string("no deadline, TCP flows stay until they end");
  for (const auto& key : memberships) {
    const auto it = state_.memberships.find(key);
    if (it == state_.memberships.end()) continue;
    Drain& drain = it->second.drain;
    events_.add(EventKind::drain, subject_of(key),
                fmt::format("{}: {}", drain.draining() ? "has a new deadline" : "started", until));
    drain.start(now, timeout);
  }
  waiting_.push_back(std::move(published));
  changed();
}

void ControlPlane::enable(std::span<const MembershipKey> memberships, Loop::Callback published) {
  for (const auto& key : memberships) {
    const auto it = state_.memberships.find(key);
    if (it == state_.memberships.end()) continue;
    Drain& drain = it->second.drain;
    if (drain.draining()) events_.add(EventKind::drain, subject_of(key), "ended");
    drain.enable();
  }
  waiting_.push_back(std::move(published));
  changed();
}

void ControlPlane::set_weight(std::span<const MembershipKey> memberships, std::uint32_t weight,
                              Loop::Callback published) {
  for (const auto& key : memberships) {
    const auto it = state_.memberships.find(key);
    const BackendConfig* const backend = configured(key);
    if (it == state_.memberships.end() || backend == nullptr) continue;
    auto& own = it->second.weight;
    const auto before = own.value_or(backend->weight);
    own = weight == backend->weight ? std::nullopt : std::optional{weight};
    if (before == weight) continue;
    events_.add(EventKind::weight, subject_of(key),
                fmt::format("{} -> {} ({} in the configuration)", before, weight, backend->weight));
  }
  waiting_.push_back(std::move(published));
  changed();
}

const BackendConfig* ControlPlane::configured(const MembershipKey& key) const {
  const PoolConfig* const pool = config_->pool(key.pool);
  if (pool == nullptr) return nullptr;
  const auto it = std::find_if(pool->backends.begin(), pool->backends.end(),
                               [&](const auto& one) { return one.address == key.address; });
  return it == pool->backends.end() ? nullptr : &*it;
}

std::string ControlPlane::subject_of(const MembershipKey& key) const {
  const BackendConfig* const backend = configured(key);
  return event_subject(key, backend == nullptr ? key.address.text() : backend->name);
}

}  // namespace holdfast

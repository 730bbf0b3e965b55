// SPDX-License-Identifier: Apache-2.0
#include "ctrl/reconcile/reconcile.h"

#include <algorithm>
#include <set>
#include <utility>

#include "ctrl/reconcile/backend_path.h"
#include "ctrl/reconcile/tunnel_source.h"
#include "ctrl/state/backend_state.h"

namespace holdfast {

namespace {

/// RFC 8200 section 5: every link must carry this much, so no client's path MTU is below it.
constexpr std::uint32_t kIpv6MinimumMtu = 1280;

std::uint32_t widest_mtu(const std::vector<NextHop>& ways) {
  std::uint32_t widest = 0;
  for (const NextHop& way : ways) widest = std::max<std::uint32_t>(widest, way.mtu);
  return widest;
}

/// One call of reconcile: the parts of the result as they grow.
class Reconciler {
 public:
  Reconciler(const Config& config, HashSeed seed, const RuntimeState& state,
             const ReconcileMemory& previous, Instant now)
      : config_(config), seed_(seed), state_(state), previous_(previous), now_(now) {}

  Reconciled run() {
    snapshot_->generation = memory_.generation = previous_.generation + 1;
    snapshot_->seed = seed_;
    snapshot_->backends.resize(state_.backend_numbers.limit());
    snapshot_->services.resize(state_.service_numbers.limit());
    for (const ServiceConfig& service : config_.services)
      for (const IpAddress& vip : service.vips)
        if (!vip.is_v4()) pools_of_ipv6_.insert(service.pool);
    for (const PoolConfig& pool : config_.pools) add_pool(pool);
    add_services();
    return {.snapshot = std::move(snapshot_),
            .pools = std::move(reports_),
            .next_deadline = next_deadline_,
            .memory = std::move(memory_)};
  }

 private:
  void add_pool(const PoolConfig& pool) {
    PoolReport report{.name = pool.name, .table_size = pool.table_size};
    const auto number = static_cast<PoolNumber>(snapshot_->pools.size());
    for (const BackendConfig& backend : pool.backends)
      report.backends.push_back(add_backend(pool, number, backend));

    report.placement = placement_of(report.backends);
    const auto tables = tables_of(pool, report);
    report.base_digest = tables->base_digest;
    report.effective_digest = tables->effective_digest;
    count_slots(*tables, report);
    snapshot_->pools.push_back(
        {.present = true, .base = tables->base, .effective = tables->effective});
    memory_.tables.emplace(pool.name, tables);
    reports_.push_back(std::move(report));
  }

  BackendReport add_backend(const PoolConfig& pool, PoolNumber pool_number,
                            const BackendConfig& backend) {
    const MembershipKey key{pool.name, backend.address};
    const Membership& membership = state_.memberships.at(key);
    const BackendNumber number = state_.backend_numbers.find(key).value();
    const BackendPath path = path_of(key, pool, backend);
    const std::uint32_t weight = membership.weight.value_or(backend.weight);
    const BackendVerdict verdict = judge_backend({.weight = weight,
                                                  .weight_set = membership.weight.has_value(),
                                                  .down_grace = pool.down_grace,
                                                  .appeared = membership.appeared,
                                                  .health = membership.health,
                                                  .drain = membership.drain,
                                                  .path = path.state,
                                                  .path_problem = path.route.problem},
                                                 now_);
    next_deadline_ = earlier(next_deadline_, verdict.next_deadline);

    auto& next_hops = snapshot_->next_hops;
    const TunnelSource source =
        tunnel_source(config_.dataplane, pool.encapsulation, path.route.tunnel_source);
    snapshot_->backends[index_of(number)] = {
        .address = backend.address,
        .tunnel_source = source.address,
        .outer_class = pool.dscp ? OuterClass::of_dscp(*pool.dscp) : OuterClass{},
        .pool = pool_number,
        .state = verdict.state,
        .encapsulation = pool.encapsulation,
        .present = true,
        .keeps_tcp = verdict.keeps_tcp,
        .keeps_udp = verdict.keeps_udp,
        .awaits_check = verdict.awaits_check,
        .udp6_checksum = pool.udp6_checksum,
        .next_hop_count = static_cast<std::uint16_t>(path.route.next_hops.size()),
        .first_next_hop = static_cast<std::uint32_t>(next_hops.size()),
        .source_spread = source.spread};
    next_hops.insert(next_hops.end(), path.route.next_hops.begin(), path.route.next_hops.end());

    return {
        .name = backend.name,
        .address = backend.address,
        .number = number,
        .weight = weight,
        .configured_weight = backend.weight,
        .state = verdict.state,
        .reason = verdict.reason,
        .warning = path.warning,
        .minimum_mtu = minimum_mtu(pool, backend.address.family()),
        .way_mtu = widest_mtu(path.route.next_hops),
        .tunnel_source = path.route.tunnel_source,
        .path_mtu = path.path_mtu,
        .since = since(key, verdict.state),
        .keeps_tcp = verdict.keeps_tcp,
        .keeps_udp = verdict.keeps_udp,
        .awaits_check = verdict.awaits_check,
        .drain_deadline = membership.drain.draining() ? membership.drain.deadline() : std::nullopt};
  }

  Instant since(const MembershipKey& key, BackendState state) {
    const auto before = previous_.states.find(key);
    const bool same = before != previous_.states.end() && before->second.state == state;
    const Instant since = same ? before->second.since : now_;
    memory_.states[key] = {state, since};
    return since;
  }

  BackendPath path_of(const MembershipKey& key, const PoolConfig& pool,
                      const BackendConfig& backend) {
    const Family family = backend.address.family();
    const auto& dataplane = config_.dataplane;
    const PathNeeds needs{.family = family,
                          .configured_source = family == Family::ipv4 ? dataplane.tunnel_source_v4
                                                                      : dataplane.tunnel_source_v6,
                          .minimum_mtu = minimum_mtu(pool, family),
                          .client_mtu = dataplane.client_mtu,
                          .header = tunnel_overhead(pool.encapsulation, family),
                          .learned = learned_mtu(key),
                          .ports = state_.ports};
    const auto known = previous_.last_known.find(key);
    const ResolvedRoute* last_known =
        known == previous_.last_known.end() ? nullptr : &known->second;
    const ResolvedRoute current = current_route(backend);
    if (!current.next_hops.empty())
      memory_.last_known[key] = current;
    else if (last_known != nullptr)
      memory_.last_known[key] = *last_known;
    return find_path(current, last_known, needs);
  }

  /// Of the way to a backend of this family; 0: any will do.
  [[nodiscard]] std::uint32_t minimum_mtu(const PoolConfig& pool, Family family) const {
    if (!pools_of_ipv6_.contains(pool.name)) return 0;
    return kIpv6MinimumMtu + tunnel_overhead(pool.encapsulation, family);
  }

  const LearnedMtu* learned_mtu(const MembershipKey& backend) {
    const LearnedMtu* const learned = state_.path_mtus.find(backend, now_);
    if (learned != nullptr) next_deadline_ = earlier(next_deadline_, learned->until);
    return learned;
  }

  [[nodiscard]] ResolvedRoute current_route(const BackendConfig& backend) const {
    if (backend.next_hop) return fixed_route(*backend.next_hop, state_.ports);
    const auto route = state_.routes.find(backend.address);
    return route == state_.routes.end() ? ResolvedRoute{} : route->second;
  }

  /// Whether a backend takes new flows depends on what else the pool has. Weight 0 never does: it
  /// has no slot that could be used.
  static bool takes_flows(const BackendReport& backend, PoolPlacement placement) {
    switch (placement) {
      case PoolPlacement::eligible:
        return backend.state == BackendState::eligible;
      case PoolPlacement::draining_only:
        return backend.state == BackendState::draining && backend.weight > 0;
      case PoolPlacement::none:
        return false;
    }
    return false;
  }

  static PoolPlacement placement_of(const std::vector<BackendReport>& backends) {
    for (const auto placement : {PoolPlacement::eligible, PoolPlacement::draining_only})
      for (const BackendReport& backend : backends)
        if (takes_flows(backend, placement)) return placement;
    return PoolPlacement::none;
  }

  std::shared_ptr<const PoolTables> tables_of(const PoolConfig& pool,
                                              const PoolReport& report) const {
    std::vector<const BackendReport*> contenders;
    for (const BackendReport& backend : report.backends)
      if (backend.weight > 0) contenders.push_back(&backend);
    // Sorted, so that another order in the file is no change.
    std::sort(contenders.begin(), contenders.end(),
              [](const auto* a, const auto* b) { return a->address < b->address; });
    PoolTablesInput input{.size = pool.table_size, .seed = seed_};
    for (const BackendReport* backend : contenders) {
      input.backends.push_back({backend->address, backend->weight});
      input.numbers.push_back(backend->number);
      input.takes_flows.push_back(takes_flows(*backend, report.placement));
    }
    const auto previous = previous_.tables.find(pool.name);
    return build_tables(std::move(input),
                        previous == previous_.tables.end() ? nullptr : previous->second);
  }

  /// Requires: `report` is of the pool and the backends of `tables`.
  static void count_slots(const PoolTables& tables, PoolReport& report) {
    const auto& numbers = tables.input.numbers;
    std::map<BackendNumber, std::size_t> index;
    for (std::size_t i = 0; i < numbers.size(); ++i) index.emplace(numbers[i], i);
    for (BackendReport& backend : report.backends) {
      const auto it = index.find(backend.number);
      if (it == index.end()) continue;  // weight 0
      backend.base_slots = tables.base_slots[it->second];
      backend.slots = tables.effective_slots[it->second];
    }
  }

  void add_services() {
    std::map<std::string_view, PoolNumber> pool_numbers;
    for (std::size_t i = 0; i < config_.pools.size(); ++i)
      pool_numbers.emplace(config_.pools[i].name, static_cast<PoolNumber>(i));
    std::vector<VipEntry> vips;
    for (const VipConfig& vip : config_.vips)
      vips.push_back(
          {vip.address, {.echo = vip.echo, .reject_unknown_port = vip.reject_unknown_port}});
    std::vector<ServiceRule> rules;
    for (const ServiceConfig& service : config_.services) {
      const ServiceNumber number = state_.service_numbers.find(service.name).value();
      snapshot_->services[index_of(number)] = {.present = true,
                                               .protocol = service.protocol,
                                               .pool = pool_numbers.at(service.pool),
                                               .timeouts = service.timeouts,
                                               .max_share = service.max_share,
                                               .embryonic_share = service.embryonic_share,
                                               .udp_repick_on_drain = service.udp_repick_on_drain,
                                               .stateless = service.stateless,
                                               .mss_clamp = service.mss_clamp.value_or(0)};
      for (const IpAddress& vip : service.vips)
        rules.push_back({vip, service.protocol, service.ports, number});
    }
    snapshot_->service_table = ServiceTable(vips, rules);
  }

  const Config& config_;
  const HashSeed seed_;
  const RuntimeState& state_;
  const ReconcileMemory& previous_;
  const Instant now_;

  std::set<std::string> pools_of_ipv6_;
  std::unique_ptr<Snapshot> snapshot_ = std::make_unique<Snapshot>();
  std::vector<PoolReport> reports_;
  Deadline next_deadline_;
  ReconcileMemory memory_;
};

}  // namespace

Reconciled reconcile(const Config& config, HashSeed seed, const RuntimeState& state,
                     const ReconcileMemory& previous, Instant now) {
  return Reconciler(config, seed, state, previous, now).run();
}

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
#include "ctrl/state_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <unordered_map>

namespace holdfast {
namespace {

bool is_bad(BackendState state) {
  switch (state) {
    case BackendState::down:
    case BackendState::neigh_unresolved:
    case BackendState::next_hop_lost:
    case BackendState::path_too_small:
      return true;
    case BackendState::eligible:
    case BackendState::weight_zero:
    case BackendState::draining:
    case BackendState::unchecked:
      return false;
  }
  return false;
}

/// Nobody can reach it: an operator should look at routes, neighbours and links.
bool is_out_of_reach(BackendState state) {
  switch (state) {
    case BackendState::neigh_unresolved:
    case BackendState::next_hop_lost:
    case BackendState::path_too_small:
      return true;
    case BackendState::down:
    case BackendState::eligible:
    case BackendState::weight_zero:
    case BackendState::draining:
    case BackendState::unchecked:
      return false;
  }
  return false;
}

std::string path_mtu_text(const BackendReport& backend) {
  const auto& said = backend.path_mtu;
  if (!said)
    return fmt::format(
        "path MTU to backend {}: what a router said is over, larger packets are "
        "tried again",
        backend.address.text());
  const auto kept = std::chrono::duration_cast<std::chrono::minutes>(PathMtus::kKept).count();
  return fmt::format("path MTU to backend {} is {}, learned from {}, for {} min",
                     backend.address.text(), said->mtu, said->router.text(), kept);
}

std::string_view text_of(PoolPlacement placement) {
  switch (placement) {
    case PoolPlacement::eligible:
      return "new flows go to its eligible backends";
    case PoolPlacement::draining_only:
      return "no backend is eligible, new flows go to the draining ones";
    case PoolPlacement::none:
      return "no backend may take new flows, they are dropped";
  }
  return "?";
}

/// The backends of a report. They nearly always stand where they stand in the next one; only where
/// one does not, all are indexed. Pools are large, and the control loop waits.
class Backends {
 public:
  explicit Backends(const PoolReport* pool) {
    if (pool != nullptr) backends_ = pool->backends;
  }

  /// Null: it is not among them. `place`: where it stands in the other report.
  const BackendReport* find(const IpAddress& address, std::size_t place) {
    if (place < backends_.size() && backends_[place].address == address) return &backends_[place];
    if (index_.empty())
      for (const auto& backend : backends_) index_.emplace(backend.address, &backend);
    const auto it = index_.find(address);
    return it == index_.end() ? nullptr : it->second;
  }

 private:
  std::span<const BackendReport> backends_{};
  std::unordered_map<IpAddress, const BackendReport*> index_{};
};

/// Null: it is not among them. `place`: where it stands in the other report, and nearly always
/// here.
const PoolReport* find(const std::vector<PoolReport>& pools, std::string_view name,
                       std::size_t place) {
  if (place < pools.size() && pools[place].name == name) return &pools[place];
  const auto it =
      std::find_if(pools.begin(), pools.end(), [&](const auto& pool) { return pool.name == name; });
  return it == pools.end() ? nullptr : &*it;
}

}  // namespace

std::string event_subject(const MembershipKey& key, std::string_view name) {
  const auto address = key.address.text();
  if (name == address) return fmt::format("{}/{}", key.pool, address);
  return fmt::format("{}/{} ({})", key.pool, name, address);
}

std::vector<StateChange> state_changes(const std::vector<PoolReport>& before,
                                       const std::vector<PoolReport>& after) {
  std::vector<StateChange> changes;
  for (const auto& pool : after) {
    const auto place = static_cast<std::size_t>(&pool - after.data());
    const PoolReport* old_pool = find(before, pool.name, place);
    Backends old_backends(old_pool);
    for (std::size_t i = 0; i < pool.backends.size(); ++i) {
      const auto& backend = pool.backends[i];
      const BackendReport* old = old_backends.find(backend.address, i);
      const auto subject = [&] {
        return event_subject({pool.name, backend.address}, backend.name);
      };
      if (old == nullptr || old->state != backend.state) {
        const auto from =
            old == nullptr ? std::string() : fmt::format("{} -> ", name_of(old->state));
        changes.push_back(
            {.severity = is_bad(backend.state) ? Severity::warning : Severity::info,
             .subject = subject(),
             .text = fmt::format("{}{}: {}", from, name_of(backend.state), backend.reason)});
      }
      const auto said_before = old == nullptr ? std::nullopt : old->path_mtu;
      const bool router_spoke = said_before != backend.path_mtu;
      if (router_spoke) changes.push_back({.subject = subject(), .text = path_mtu_text(backend)});
      // What a router said is told once, and not in other words besides.
      if (const auto before_now = old == nullptr ? std::string() : old->warning;
          before_now != backend.warning && !router_spoke) {
        const bool over = backend.warning.empty();
        changes.push_back(
            {.severity = over ? Severity::info : Severity::warning,
             .subject = subject(),
             .text = over ? "the longest packets of clients fit again" : backend.warning});
      }
      if (old != nullptr && old->awaits_check && !backend.awaits_check &&
          backend.state == BackendState::unchecked) {
        changes.push_back({.severity = Severity::warning,
                           .subject = subject(),
                           .text = "still unchecked: " + backend.reason});
      }
      if (old != nullptr && old->keeps_tcp && !backend.keeps_tcp) {
        changes.push_back({.severity = Severity::warning,
                           .subject = subject(),
                           .text = fmt::format("flows that are left move now, each at its next "
                                               "packet: {}",
                                               backend.reason)});
      }
    }
    if (old_pool == nullptr || old_pool->placement != pool.placement) {
      const bool worse = old_pool != nullptr && pool.placement != PoolPlacement::eligible;
      changes.push_back({.kind = EventKind::pool,
                         .severity = worse ? Severity::warning : Severity::info,
                         .subject = pool.name,
                         .text = std::string(text_of(pool.placement))});
    }
  }
  return changes;
}

std::vector<std::string> standing_warnings(const std::vector<PoolReport>& pools) {
  std::vector<std::string> warnings;
  for (const auto& pool : pools) {
    for (const auto& backend : pool.backends) {
      const auto& why = is_out_of_reach(backend.state) ? backend.reason : backend.warning;
      if (why.empty()) continue;
      warnings.push_back(
          fmt::format("{}: {}", event_subject({pool.name, backend.address}, backend.name), why));
    }
  }
  return warnings;
}

}  // namespace holdfast

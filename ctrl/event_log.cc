// SPDX-License-Identifier: Apache-2.0
#include "ctrl/event_log.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <string_view>

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

const BackendReport* find(const PoolReport* pool, const IpAddress& address) {
  if (pool == nullptr) return nullptr;
  const auto it = std::find_if(pool->backends.begin(), pool->backends.end(),
                               [&](const auto& backend) { return backend.address == address; });
  return it == pool->backends.end() ? nullptr : &*it;
}

const PoolReport* find(const std::vector<PoolReport>& pools, std::string_view name) {
  const auto it =
      std::find_if(pools.begin(), pools.end(), [&](const auto& pool) { return pool.name == name; });
  return it == pools.end() ? nullptr : &*it;
}

std::string label(const PoolReport& pool, const BackendReport& backend) {
  const auto address = backend.address.text();
  if (backend.name == address) return fmt::format("backend {}/{}", pool.name, address);
  return fmt::format("backend {}/{} ({})", pool.name, backend.name, address);
}

}  // namespace

std::vector<StateChange> state_changes(const std::vector<PoolReport>& before,
                                       const std::vector<PoolReport>& after) {
  std::vector<StateChange> changes;
  for (const auto& pool : after) {
    const PoolReport* old_pool = find(before, pool.name);
    for (const auto& backend : pool.backends) {
      const BackendReport* old = find(old_pool, backend.address);
      if (old != nullptr && old->state == backend.state) continue;
      const auto from = old == nullptr ? std::string() : fmt::format("{} -> ", name_of(old->state));
      changes.push_back(
          {is_bad(backend.state), fmt::format("{}: {}{}: {}", label(pool, backend), from,
                                              name_of(backend.state), backend.reason)});
    }
    const bool placement_changed = old_pool == nullptr || old_pool->placement != pool.placement;
    if (placement_changed) {
      changes.push_back({old_pool != nullptr && pool.placement != PoolPlacement::eligible,
                         fmt::format("pool {}: {}", pool.name, text_of(pool.placement))});
    }
  }
  return changes;
}

void log_changes(const std::vector<PoolReport>& before, const std::vector<PoolReport>& after) {
  for (const auto& change : state_changes(before, after)) {
    spdlog::log(change.bad ? spdlog::level::warn : spdlog::level::info, "{}", change.text);
  }
}

}  // namespace holdfast

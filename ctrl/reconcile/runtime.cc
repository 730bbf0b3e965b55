// SPDX-License-Identifier: Apache-2.0
#include "ctrl/reconcile/runtime.h"

#include <fmt/format.h>

#include <set>
#include <utility>

namespace holdfast {

namespace {

/// Gives a number to each wanted key and retires all others; false when the numbers do not suffice.
template <class Key, class Number>
bool renumber(Numbers<Key, Number>& numbers, const std::set<Key>& before,
              const std::set<Key>& wanted) {
  for (const Key& key : before)
    if (!wanted.contains(key)) numbers.retire(key);
  for (const Key& key : wanted)
    if (!numbers.take(key)) return false;
  return true;
}

Membership new_membership(const CheckConfig* check, Instant now) {
  if (check == nullptr) return {.appeared = now, .health = HealthState::without_check(now)};
  return {.appeared = now, .health = HealthState({check->rise, check->fall}, now)};
}

}  // namespace

Result<void> follow_config(RuntimeState& state, const Config& config, Instant now) {
  std::set<MembershipKey> memberships;
  for (const PoolConfig& pool : config.pools)
    for (const BackendConfig& backend : pool.backends)
      memberships.insert({pool.name, backend.address});
  std::set<MembershipKey> memberships_before;
  for (const auto& [key, membership] : state.memberships) memberships_before.insert(key);
  std::set<std::string> services;
  for (const ServiceConfig& service : config.services) services.insert(service.name);

  BackendNumbers backend_numbers = state.backend_numbers;
  ServiceNumbers service_numbers = state.service_numbers;
  if (!renumber(backend_numbers, memberships_before, memberships))
    return fail(
        fmt::format("more than {} backends, counting once for each pool and those that were "
                    "removed in the last minutes; try again later or configure fewer",
                    kMaxNumbers));
  if (!renumber(service_numbers, state.services, services))
    return fail(
        fmt::format("more than {} services, counting those that were removed in the last "
                    "minutes; try again later or configure fewer",
                    kMaxNumbers));

  state.backend_numbers = std::move(backend_numbers);
  state.service_numbers = std::move(service_numbers);
  state.services = std::move(services);
  std::erase_if(state.memberships,
                [&](const auto& entry) { return !memberships.contains(entry.first); });
  for (const PoolConfig& pool : config.pools) {
    const CheckConfig* check = pool.check.empty() ? nullptr : config.check(pool.check);
    for (const BackendConfig& backend : pool.backends) {
      const auto [it, is_new] =
          state.memberships.try_emplace({pool.name, backend.address}, new_membership(check, now));
      if (is_new) continue;
      if (check != nullptr)
        it->second.health.set_rules({check->rise, check->fall});
      else
        it->second.health.on_check_removed(now);
    }
  }
  return {};
}

}  // namespace holdfast

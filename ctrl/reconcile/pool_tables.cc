// SPDX-License-Identifier: Apache-2.0
#include "ctrl/reconcile/pool_tables.h"

#include <algorithm>
#include <utility>

namespace holdfast {

namespace {

std::shared_ptr<const SlotTable> numbered(const MaglevTable& owners,
                                          const std::vector<BackendNumber>& numbers) {
  SlotTable slots;
  slots.reserve(owners.size());
  for (const auto owner : owners) slots.push_back(numbers[owner]);
  return std::make_shared<const SlotTable>(std::move(slots));
}

std::vector<std::uint32_t> slots_by_owner(const MaglevTable& owners, std::size_t backends) {
  std::vector<std::uint32_t> slots(backends);
  for (const auto owner : owners) ++slots[owner];
  return slots;
}

bool same_base(const PoolTablesInput& a, const PoolTablesInput& b) {
  return a.size == b.size && a.seed.value == b.seed.value && a.backends == b.backends &&
         a.numbers == b.numbers;
}

}  // namespace

std::shared_ptr<const PoolTables> build_tables(PoolTablesInput input,
                                               const std::shared_ptr<const PoolTables>& previous) {
  const bool keep_base = previous && same_base(input, previous->input);
  if (keep_base && input.takes_flows == previous->input.takes_flows) return previous;

  PoolTables tables;
  if (keep_base) {
    tables = *previous;
  } else {
    tables.base_owners = build_maglev(input.backends, input.seed, input.size);
    tables.base = numbered(tables.base_owners, input.numbers);
    tables.base_digest = maglev_digest(tables.base_owners, input.backends);
    tables.base_slots = slots_by_owner(tables.base_owners, input.backends.size());
  }
  if (std::find(input.takes_flows.begin(), input.takes_flows.end(), false) ==
      input.takes_flows.end()) {
    tables.effective = tables.base;
    tables.effective_digest = tables.base_digest;
    tables.effective_slots = tables.base_slots;
  } else {
    const MaglevTable owners =
        overlay_maglev(tables.base_owners, input.backends, input.takes_flows, input.seed);
    tables.effective = numbered(owners, input.numbers);
    tables.effective_digest = maglev_digest(owners, input.backends);
    tables.effective_slots = slots_by_owner(owners, input.backends.size());
  }
  tables.input = std::move(input);
  return std::make_shared<const PoolTables>(std::move(tables));
}

}  // namespace holdfast

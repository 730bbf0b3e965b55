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

/// The other way round. Not kept beside the slots: with a thousand pools it would be half of all
/// memory, and is needed only when a backend goes out.
MaglevTable owners_of(const SlotTable& slots, const std::vector<BackendNumber>& numbers) {
  std::vector<std::uint16_t> index(std::size_t{kMaxNumbers} + 1);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    index[index_of(numbers[i])] = static_cast<std::uint16_t>(i);
  MaglevTable owners;
  owners.reserve(slots.size());
  for (const BackendNumber number : slots) owners.push_back(index[index_of(number)]);
  return owners;
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
    const MaglevTable owners = build_maglev(input.backends, input.seed, input.size);
    tables.base = numbered(owners, input.numbers);
    tables.base_digest = maglev_digest(owners, input.backends);
    tables.base_slots = slots_by_owner(owners, input.backends.size());
  }
  if (std::find(input.takes_flows.begin(), input.takes_flows.end(), false) ==
      input.takes_flows.end()) {
    tables.effective = tables.base;
    tables.effective_digest = tables.base_digest;
    tables.effective_slots = tables.base_slots;
  } else {
    const MaglevTable owners = overlay_maglev(owners_of(*tables.base, input.numbers),
                                              input.backends, input.takes_flows, input.seed);
    tables.effective = numbered(owners, input.numbers);
    tables.effective_digest = maglev_digest(owners, input.backends);
    tables.effective_slots = slots_by_owner(owners, input.backends.size());
  }
  tables.input = std::move(input);
  return std::make_shared<const PoolTables>(std::move(tables));
}

}  // namespace holdfast

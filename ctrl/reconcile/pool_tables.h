// SPDX-License-Identifier: Apache-2.0
// The base and the effective table of one pool, and what they were built from: what did not change
// is not built again but shared with the snapshot before. Pure; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/maglev/maglev.h"
#include "lib/model/service.h"

namespace holdfast {

/// What a pool's tables are a function of. `backends`: those of weight > 0, sorted by address;
/// `numbers` and `takes_flows` go with them.
struct PoolTablesInput {
  std::uint32_t size = 0;
  HashSeed seed{};
  std::vector<MaglevBackend> backends{};
  std::vector<BackendNumber> numbers{};
  std::vector<bool> takes_flows{};
};

struct PoolTables {
  PoolTablesInput input{};
  std::shared_ptr<const SlotTable> base{};
  std::shared_ptr<const SlotTable> effective{};  // `base` itself while all take flows
  std::uint64_t base_digest = 0;
  std::uint64_t effective_digest = 0;
  std::vector<std::uint32_t> base_slots{};  // owned by each of input.backends
  std::vector<std::uint32_t> effective_slots{};
};

/// `previous` itself when the input is the same; its base when only takes_flows differs. `previous`
/// may be null.
[[nodiscard]] std::shared_ptr<const PoolTables> build_tables(
    PoolTablesInput input, const std::shared_ptr<const PoolTables>& previous);

}  // namespace holdfast

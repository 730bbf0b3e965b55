// SPDX-License-Identifier: Apache-2.0
// DPDK's rte_hash as a flow table, to race ours against: key -> backend, looked up in bulk with
// its own hash function. Its memory is of the same kind as ours (huge pages where there are any),
// by a heap of its own, so that neither side pays for the other's pages. One thread.
#pragma once

#include <rte_hash.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "lb/flow/table_memory.h"
#include "lb/port/eal.h"
#include "lib/model/numbers.h"

namespace holdfast::bench {

/// Starts EAL without devices or huge pages, once in the process: rte_hash allocates by it. The
/// result must outlive all rivals. Throws std::runtime_error.
[[nodiscard]] Eal start_eal();

class RteHashRival {
 public:
  static constexpr unsigned kBatch = 32;

  /// For `flows` keys of `key_size` bytes. Requires: start_eal(). Throws std::runtime_error.
  RteHashRival(std::uint64_t flows, std::uint32_t key_size);
  RteHashRival(const RteHashRival&) = delete;
  RteHashRival& operator=(const RteHashRival&) = delete;
  ~RteHashRival();

  /// False: there is no room.
  [[nodiscard]] bool insert(const std::uint8_t* key, BackendNumber backend);
  /// Backends of kBatch keys, kNoBackend where there is none.
  void find(const std::array<const void*, kBatch>& keys,
            std::array<BackendNumber, kBatch>& backends) const;
  /// All that was allocated for it.
  [[nodiscard]] std::uint64_t bytes() const;

 private:
  std::unique_ptr<TableMemory> memory_;
  std::string heap_;
  int socket_ = -1;
  rte_hash* hash_ = nullptr;
};

}  // namespace holdfast::bench

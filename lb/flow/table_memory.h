// SPDX-License-Identifier: Apache-2.0
// Where a flow table's entries lie: fixed memory, zeroed, mapped and touched before the first
// packet, so that no packet ever pays for a page fault. Made at start-up, owned by the table.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace holdfast {

class TableMemory {
 public:
  virtual ~TableMemory() = default;
  /// Zeroed; aligned to a cache line; the same for the object's whole life.
  [[nodiscard]] virtual std::span<std::byte> bytes() noexcept = 0;
  /// For logs: "19.1 MiB in huge pages on node 0".
  [[nodiscard]] virtual std::string description() const = 0;
};

/// Own mapping of `bytes` bytes: in hugetlb pages, else in transparent huge pages, else in plain
/// ones, whatever the system has to give. `numa_node` < 0: any. A node that can not be had is no
/// error; the description says where the memory is. Throws std::runtime_error with one sentence
/// when there is not enough memory.
[[nodiscard]] std::unique_ptr<TableMemory> map_table_memory(std::size_t bytes, int numa_node);

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// The huge pages of this machine, by NUMA node: whether there are enough for what DPDK needs, and
// what to do if not. Pure but for read_huge_pages(); any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace holdfast {

/// The pages of one size on one node.
struct HugePages {
  int node = 0;
  std::size_t page_size = 0;  // bytes
  std::size_t reserved = 0;   // pages, in use or free
  std::size_t free = 0;       // pages
  std::string folder{};       // of sysfs: "nr_hugepages" in it reserves
};

/// Each size that the kernel has, on each node. A kernel without NUMA is one node 0.
[[nodiscard]] std::vector<HugePages> read_huge_pages();

/// Whether DPDK finds `bytes` in free pages of one size on one node: `node`, nullopt: any. The
/// sizes are not added up, because the larger part is one piece, and DPDK takes that from one size.
[[nodiscard]] bool enough_huge_pages(std::span<const HugePages> all, std::size_t bytes,
                                     std::optional<int> node);

/// For a sentence "... needs": how many pages of which size are needed on `node` for `bytes`, how
/// many are free there, and the command that reserves them.
[[nodiscard]] std::string huge_pages_to_reserve(std::span<const HugePages> all, std::size_t bytes,
                                                int node);

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
#include "lb/flow/table_memory.h"

#include <fmt/format.h>
#include <linux/mempolicy.h>
#include <linux/mman.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string_view>

namespace holdfast {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

[[nodiscard]] std::size_t round_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

/// A private anonymous mapping, unmapped at the end.
class Mapping {
 public:
  Mapping() = default;
  Mapping(std::size_t size, int extra_flags) {
    void* const at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | extra_flags, -1, 0);
    if (at == MAP_FAILED) return;
    base_ = static_cast<std::byte*>(at);
    size_ = size;
  }
  Mapping(Mapping&& other) noexcept : base_(other.base_), size_(other.size_) {
    other.base_ = nullptr;
  }
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Mapping() {
    if (base_ != nullptr) ::munmap(base_, size_);
  }

  [[nodiscard]] std::byte* base() const { return base_; }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  std::byte* base_ = nullptr;
  std::size_t size_ = 0;
};

/// Asks for pages of `node`. Preferred, not bound: a node without free pages must slow us down, not
/// kill us. False: the kernel refused (no NUMA, or forbidden in this container).
[[nodiscard]] bool prefer_node(const Mapping& mapping, int node) {
  constexpr unsigned kBits = sizeof(unsigned long) * CHAR_BIT;
  std::array<unsigned long, 16> mask{};
  const auto bit = static_cast<unsigned>(node);
  if (bit >= kBits * mask.size()) return false;
  mask[bit / kBits] = 1UL << bit % kBits;
  return ::syscall(SYS_mbind, mapping.base(), mapping.size(), MPOL_PREFERRED, mask.data(),
                   kBits * mask.size(), 0) == 0;
}

/// Brings every page in. False: there is not enough memory of this kind.
[[nodiscard]] bool populate(const Mapping& mapping) {
#ifdef MADV_POPULATE_WRITE  // Linux 5.14; refuses where a plain write would raise SIGBUS
  if (::madvise(mapping.base(), mapping.size(), MADV_POPULATE_WRITE) == 0) return true;
  if (errno != EINVAL) return false;
#endif
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  for (std::size_t i = 0; i < mapping.size(); i += page)
    *static_cast<volatile std::byte*>(mapping.base() + i) = std::byte{0};
  return true;
}

class MappedTableMemory final : public TableMemory {
 public:
  MappedTableMemory(Mapping mapping, std::byte* first, std::size_t size, std::string description)
      : mapping_(std::move(mapping)), bytes_(first, size), description_(std::move(description)) {}

  [[nodiscard]] std::span<std::byte> bytes() noexcept override { return bytes_; }
  [[nodiscard]] std::string description() const override { return description_; }

 private:
  Mapping mapping_;
  std::span<std::byte> bytes_;
  std::string description_;
};

}  // namespace

std::unique_ptr<TableMemory> map_table_memory(std::size_t bytes, int numa_node) {
  std::string_view kind = "huge pages";
  bool on_node = false;
  const auto ready = [&](const Mapping& mapping) {
    if (mapping.base() == nullptr) return false;
    on_node = numa_node >= 0 && prefer_node(mapping, numa_node);
    return populate(mapping);
  };

  Mapping mapping;
  std::byte* first = nullptr;
  // A table below one huge page is a test's or a toy's: it must not take one from the packets.
  if (bytes >= kHugePage) {
    mapping = Mapping(round_up(bytes, kHugePage), MAP_HUGETLB | MAP_HUGE_2MB);
    if (ready(mapping)) first = mapping.base();
  }
  if (first == nullptr) {
    // One huge page more than needed, to start at a huge page's border.
    const bool large = bytes >= kHugePage;
    mapping = Mapping(large ? round_up(bytes, kHugePage) + kHugePage : bytes, 0);
    const bool huge = large && mapping.base() != nullptr &&
                      ::madvise(mapping.base(), mapping.size(), MADV_HUGEPAGE) == 0;
    kind = huge ? "transparent huge pages where the kernel has them" : "plain pages";
    if (ready(mapping)) {
      const auto address = reinterpret_cast<std::uintptr_t>(mapping.base());
      first = mapping.base() + (large ? round_up(address, kHugePage) - address : 0);
    }
  }
  if (first == nullptr)
    throw std::runtime_error(
        fmt::format("no memory for a flow table of {} MiB: lower dataplane.flow_capacity or "
                    "dataplane.workers, or give the machine more",
                    round_up(bytes, std::size_t{1} << 20) >> 20));

  std::string place;
  if (numa_node >= 0)
    place = on_node ? fmt::format(" on node {}", numa_node)
                    : fmt::format(" on any node (node {} was refused)", numa_node);
  auto description =
      fmt::format("{:.1f} MiB in {}{}", static_cast<double>(bytes) / (1 << 20), kind, place);
  return std::make_unique<MappedTableMemory>(std::move(mapping), first, bytes,
                                             std::move(description));
}

}  // namespace holdfast

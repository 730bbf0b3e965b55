// SPDX-License-Identifier: Apache-2.0
#include "bench/rte_rival.h"

#include <fmt/core.h>
#include <rte_errno.h>
#include <rte_malloc.h>
#include <sched.h>
#include <unistd.h>

#include <bit>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

namespace holdfast::bench {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

[[noreturn]] void fail(const char* what) {
  throw std::runtime_error(fmt::format("rte_hash: {}: {}", what, rte_strerror(rte_errno)));
}

/// More than rte_hash takes of it: the key store, 64 bytes for eight places, a ring of free places
/// that is rounded up to a power of two.
std::size_t heap_size(std::uint64_t flows, std::uint32_t key_size) {
  const std::uint64_t places = std::bit_ceil(flows + 1);
  return places * 8 + places * 2 * 4 + flows * ((key_size + 8 + 15) / 16 * 16) + 16 * kHugePage;
}

/// The part that starts and ends at borders of huge pages.
std::span<std::byte> whole_pages(std::span<std::byte> bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
  const std::size_t skip = (kHugePage - address % kHugePage) % kHugePage;
  return bytes.subspan(skip, (bytes.size() - skip) / kHugePage * kHugePage);
}

}  // namespace

Eal start_eal() {
  // EAL ties the calling thread to its first CPU; the scheduler knows better which one is free.
  cpu_set_t before;
  CPU_ZERO(&before);
  const bool known = sched_getaffinity(0, sizeof before, &before) == 0;
  auto eal =
      Eal::start({"holdfast_bench", "--no-huge", "-m", "64", "--no-shconf", "--no-pci",
                  "--no-telemetry", fmt::format("--file-prefix=holdfast-bench{}", getpid())});
  if (!eal) throw std::runtime_error(eal.error().message);
  if (known) sched_setaffinity(0, sizeof before, &before);
  return std::move(eal).value();
}

RteHashRival::RteHashRival(std::uint64_t flows, std::uint32_t key_size)
    : memory_(map_table_memory(heap_size(flows, key_size), -1)) {
  static int number = 0;
  heap_ = fmt::format("rival{}", number++);
  const auto pages = whole_pages(memory_->bytes());
  if (rte_malloc_heap_create(heap_.c_str()) != 0) fail("no heap");
  if (rte_malloc_heap_memory_add(heap_.c_str(), pages.data(), pages.size(), nullptr, 0,
                                 kHugePage) != 0)
    fail("no memory in the heap");
  socket_ = rte_malloc_heap_get_socket(heap_.c_str());

  rte_hash_parameters parameters{};
  parameters.name = heap_.c_str();
  parameters.entries = static_cast<std::uint32_t>(flows);
  parameters.key_len = key_size;
  parameters.socket_id = socket_;
  hash_ = rte_hash_create(&parameters);
  if (hash_ == nullptr) fail("can not be made");
}

RteHashRival::~RteHashRival() {
  rte_hash_free(hash_);
  const auto pages = whole_pages(memory_->bytes());
  rte_malloc_heap_memory_remove(heap_.c_str(), pages.data(), pages.size());
  rte_malloc_heap_destroy(heap_.c_str());
}

bool RteHashRival::insert(const std::uint8_t* key, BackendNumber backend) {
  return rte_hash_add_key_data(hash_, key,
                               reinterpret_cast<void*>(std::uintptr_t{index_of(backend)})) == 0;
}

void RteHashRival::find(const std::array<const void*, kBatch>& keys,
                        std::array<BackendNumber, kBatch>& backends) const {
  std::array<const void*, kBatch> pointers = keys;
  std::array<void*, kBatch> data;
  std::uint64_t found = 0;
  rte_hash_lookup_bulk_data(hash_, pointers.data(), kBatch, &found, data.data());
  for (unsigned i = 0; i < kBatch; ++i)
    backends[i] = (found >> i & 1) != 0
                      ? static_cast<BackendNumber>(reinterpret_cast<std::uintptr_t>(data[i]))
                      : kNoBackend;
}

std::uint64_t RteHashRival::bytes() const {
  rte_malloc_socket_stats stats{};
  if (rte_malloc_get_socket_stats(socket_, &stats) != 0) fail("no statistics of the heap");
  return stats.heap_allocsz_bytes;
}

}  // namespace holdfast::bench

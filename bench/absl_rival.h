// SPDX-License-Identifier: Apache-2.0
// absl::flat_hash_map as a flow table, to race ours against: key -> backend, with absl's own hash.
// Its memory is of the same kind as ours and is counted where it is asked for. One thread.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "lb/flow/table_memory.h"
#include "lib/model/numbers.h"

namespace holdfast::bench {

/// What lives, by address; the map allocates a few times in its life.
struct CountedMemory {
  std::map<void*, std::pair<std::unique_ptr<TableMemory>, std::size_t>> blocks{};
  std::size_t bytes = 0;
};

template <class T>
struct CountedAllocator {
  using value_type = T;

  explicit CountedAllocator(CountedMemory& counted) : memory(&counted) {}
  template <class U>
  CountedAllocator(const CountedAllocator<U>& other) : memory(other.memory) {}  // NOLINT

  [[nodiscard]] T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    auto block = map_table_memory(bytes, -1);
    void* const at = block->bytes().data();
    memory->blocks.emplace(at, std::pair{std::move(block), bytes});
    memory->bytes += bytes;
    return static_cast<T*>(at);
  }
  void deallocate(T* at, std::size_t count) {
    memory->bytes -= count * sizeof(T);
    memory->blocks.erase(at);
  }
  friend bool operator==(const CountedAllocator& a, const CountedAllocator& b) {
    return a.memory == b.memory;
  }

  CountedMemory* memory;
};

template <std::size_t kKeySize>
class AbslRival {
 public:
  static constexpr unsigned kBatch = 32;
  using Key = std::array<std::uint8_t, kKeySize>;

  /// Makes room for `flows` at once: so it is as small as it can be.
  explicit AbslRival(std::uint64_t flows)
      : map_(0, Hash{}, std::equal_to<Key>{}, Allocator(memory_)) {
    map_.reserve(flows);
  }
  AbslRival(const AbslRival&) = delete;
  AbslRival& operator=(const AbslRival&) = delete;

  void insert(const Key& key, BackendNumber backend) { map_.emplace(key, backend); }
  /// Backends of kBatch keys, kNoBackend where there is none. `ahead`: the places are prefetched
  /// first.
  void find(const std::array<Key, kBatch>& keys, std::array<BackendNumber, kBatch>& backends,
            bool ahead) const {
    if (ahead)
      for (const Key& key : keys) map_.prefetch(key);
    for (unsigned i = 0; i < kBatch; ++i) {
      const auto at = map_.find(keys[i]);
      backends[i] = at == map_.end() ? kNoBackend : at->second;
    }
  }
  [[nodiscard]] std::size_t size() const { return map_.size(); }
  [[nodiscard]] std::uint64_t bytes() const { return memory_.bytes; }

 private:
  /// Over the bytes as they lie there.
  struct Hash {
    std::size_t operator()(const Key& key) const { return absl::Hash<Key>{}(key); }
  };
  using Allocator = CountedAllocator<std::pair<const Key, BackendNumber>>;

  CountedMemory memory_{};
  absl::flat_hash_map<Key, BackendNumber, Hash, std::equal_to<Key>, Allocator> map_;
};

}  // namespace holdfast::bench

// SPDX-License-Identifier: Apache-2.0
// Hands out the small numbers that flow entries and counters hold. A key keeps its number for as
// long as it is configured; a number that became free is given to another key only after every
// worker has swept the entries that hold it. Owned by the control thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "lib/model/numbers.h"
#include "lib/net/address.h"

namespace holdfast {

/// The identity of a backend in one pool.
struct MembershipKey {
  std::string pool;
  IpAddress address{};

  friend auto operator<=>(const MembershipKey&, const MembershipKey&) = default;
};

/// The life of a number: free -> held (take) -> retired (retire) -> waiting (released) -> free
/// (reclaim). Taking a key again while its number is retired or waiting gives the same number
/// back: entries that still hold it mean the same thing.
template <class Key, class Number>
class Numbers {
 public:
  /// Workers' completed sweeps that must pass after released(): one may be half done, the next may
  /// have begun under the old snapshot in the burst that was running, the third is whole.
  static constexpr std::uint64_t kSweeps = 3;

  /// The key's number, the lowest free one when it has none; nullopt: all kMaxNumbers are in use or
  /// not yet swept.
  std::optional<Number> take(const Key& key);
  [[nodiscard]] std::optional<Number> find(const Key& key) const;
  /// The key is gone from the configuration. Does nothing when it holds no number.
  void retire(const Key& key);

  /// Call after the snapshot without the retired keys was published. `sweeps`: completed sweeps by
  /// worker (FlowTableCounters::sweeps), read after that publication.
  void released(std::span<const std::uint64_t> sweeps);
  /// Frees what has been swept; returns those numbers. `sweeps`: as above, read now. With no worker
  /// there is nothing to wait for.
  std::vector<Number> reclaim(std::span<const std::uint64_t> sweeps);

  /// One more than the highest number that is not free.
  [[nodiscard]] std::size_t limit() const { return next_; }
  /// Numbers that are retired or wait for sweeps.
  [[nodiscard]] std::size_t waiting() const { return leaving_.size(); }

 private:
  struct Leaving {
    Number number{};
    bool published = false;               // released() was called since
    std::vector<std::uint64_t> sweeps{};  // at that time, by worker
  };

  std::map<Key, Number> held_;
  std::map<Key, Leaving> leaving_;
  std::set<std::size_t> free_;  // below next_
  std::size_t next_ = 0;        // all from here on are free
};

using BackendNumbers = Numbers<MembershipKey, BackendNumber>;
using ServiceNumbers = Numbers<std::string, ServiceNumber>;

extern template class Numbers<MembershipKey, BackendNumber>;
extern template class Numbers<std::string, ServiceNumber>;

}  // namespace holdfast

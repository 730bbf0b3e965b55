// SPDX-License-Identifier: Apache-2.0
// Maglev consistent hashing (Eisenbud et al., NSDI 2016, section 3.4), weighted by accumulated
// turns, and the overlay that keeps slots in place while backends are out. Pure; any thread; a
// build at 655373 slots takes tens of milliseconds, so it happens off the packet path.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lib/flow/flow_key.h"
#include "lib/net/address.h"

namespace holdfast {

struct MaglevBackend {
  IpAddress address{};
  std::uint32_t weight = 0;  // 0..1000; 0 owns no slot

  friend bool operator==(const MaglevBackend&, const MaglevBackend&) = default;
};

/// Slot -> index into the span of backends that it was built from.
using MaglevTable = std::vector<std::uint16_t>;

/// A table of `size` slots, a pure function of (addresses, weights, seed, size): the order of
/// `backends` changes only the indices, never a slot's owner. Shares are within 2 slots of
/// size * weight / sum(weights). Empty when no backend has weight.
/// Requires: size is prime, addresses are distinct, backends.size() < 65535.
[[nodiscard]] MaglevTable build_maglev(std::span<const MaglevBackend> backends, HashSeed seed,
                                       std::uint32_t size);

/// The effective table: each slot's base owner if it is eligible, else the owner in the Maglev
/// table of the eligible backends alone. So no slot moves whose base owner is and stays eligible,
/// and with all eligible the base is back exactly. Empty when none is eligible. Requires: `base`
/// was built from `backends`; eligible.size() == backends.size().
[[nodiscard]] MaglevTable overlay_maglev(const MaglevTable& base,
                                         std::span<const MaglevBackend> backends,
                                         const std::vector<bool>& eligible, HashSeed seed);

/// What operators compare between load balancers: depends on each slot's owner's address only.
[[nodiscard]] std::uint64_t maglev_digest(const MaglevTable& table,
                                          std::span<const MaglevBackend> backends);

/// Trial division; table sizes are at most a few million.
[[nodiscard]] bool is_prime(std::uint32_t value);

}  // namespace holdfast

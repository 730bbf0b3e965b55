// SPDX-License-Identifier: Apache-2.0
// The population step of Maglev (NSDI 2016, section 3.4, pseudocode 1), with weights: candidates
// take turns, and in its turn each claims the next slot of its own permutation that is still free.
// Pure; any thread. Users want lib/maglev/maglev.h, which derives the permutations.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lib/maglev/maglev.h"

namespace holdfast {

/// One contender. Its permutation is (offset + j * skip) mod size for j = 0, 1, ...
struct MaglevCandidate {
  std::uint32_t offset = 0;  // 0..size-1
  std::uint32_t skip = 1;    // 1..size-1
  std::uint32_t weight = 1;  // 1..1000
};

/// How many slots each gets: size * weight / sum(weights) rounded down, and what is left over goes
/// one each to the largest remainders (equal ones: the earlier first). So every count is less than
/// one away from its exact share, and the counts add up to `size`.
[[nodiscard]] std::vector<std::uint32_t> maglev_shares(std::span<const MaglevCandidate> candidates,
                                                       std::uint32_t size);

/// Slot -> index into `candidates`. Takes about size * ln(size) steps, and at the very worst (all
/// permutations equal) size * candidates.size(). Empty without candidates. Requires: `size` is
/// prime, so that every permutation visits every slot; fewer than 65535 candidates.
[[nodiscard]] MaglevTable populate_maglev(std::span<const MaglevCandidate> candidates,
                                          std::uint32_t size);

}  // namespace holdfast

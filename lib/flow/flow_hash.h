// SPDX-License-Identifier: Apache-2.0
// XXH3-128 with its length known at compile time, so that it is a dozen instructions in place of a
// call with a switch. For the packet path; everything else calls hash_flow() (lib/flow/flow_key.h),
// which is the same code behind a call. Pure; any thread.
#pragma once

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstddef>
#include <cstdint>

#include "lib/flow/flow_key.h"

namespace holdfast {

/// Of `kSize` bytes, which are a FlowKey's.
template <std::size_t kSize>
[[nodiscard]] inline FlowHash hash_key_bytes(const std::uint8_t* bytes, HashSeed seed) {
  static_assert(kSize == FlowKey::kV4Size || kSize == FlowKey::kV6Size);
  const XXH128_hash_t hash = XXH3_128bits_withSeed(bytes, kSize, seed.value);
  return {.low64 = hash.low64, .high64 = hash.high64};
}

/// Requires: the key has been given its bytes.
[[nodiscard]] inline FlowHash hash_flow_inline(const FlowKey& key, HashSeed seed) {
  const std::uint8_t* const bytes = key.bytes().data();
  return key.is_v4() ? hash_key_bytes<FlowKey::kV4Size>(bytes, seed)
                     : hash_key_bytes<FlowKey::kV6Size>(bytes, seed);
}

}  // namespace holdfast

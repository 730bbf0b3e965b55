// SPDX-License-Identifier: Apache-2.0
#include "lib/flow/flow_key.h"

#include <fmt/format.h>
#include <xxhash.h>

namespace holdfast {

FlowHash hash_flow(const FlowKey& key, HashSeed seed) {
  const auto bytes = key.bytes();
  const XXH128_hash_t hash = XXH3_128bits_withSeed(bytes.data(), bytes.size(), seed.value);
  return {.low64 = hash.low64, .high64 = hash.high64};
}

std::string seed_fingerprint(HashSeed seed) {
  constexpr std::string_view kLabel = "holdfast seed fingerprint";
  const XXH128_hash_t hash = XXH3_128bits_withSeed(kLabel.data(), kLabel.size(), seed.value);
  return fmt::format("{:08x}", static_cast<std::uint32_t>(hash.high64 >> 32));
}

}  // namespace holdfast

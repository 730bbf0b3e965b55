// SPDX-License-Identifier: Apache-2.0
#include "lib/flow/flow_key.h"

#include <fmt/format.h>

#include "lib/flow/flow_hash.h"

namespace holdfast {

FlowHash hash_flow(const FlowKey& key, HashSeed seed) { return hash_flow_inline(key, seed); }

std::string seed_fingerprint(HashSeed seed) {
  constexpr std::string_view kLabel = "holdfast seed fingerprint";
  const XXH128_hash_t hash = XXH3_128bits_withSeed(kLabel.data(), kLabel.size(), seed.value);
  return fmt::format("{:08x}", static_cast<std::uint32_t>(hash.high64 >> 32));
}

}  // namespace holdfast

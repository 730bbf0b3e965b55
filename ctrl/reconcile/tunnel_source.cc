// SPDX-License-Identifier: Apache-2.0
#include "ctrl/reconcile/tunnel_source.h"

namespace holdfast {

TunnelSource tunnel_source(const DataplaneConfig& config, Encapsulation encapsulation,
                           const IpAddress& found) {
  const auto& prefix = found.is_v4() ? config.ipip_spread_v4 : config.ipip_spread_v6;
  if (encapsulation != Encapsulation::ipip || !prefix || found.is_unspecified()) return {found};
  // A flow has 32 bits of entropy: of a shorter prefix only so many are used.
  const unsigned free = (found.is_v4() ? 32u : 128u) - prefix->length;
  const std::uint32_t spread = free >= 32 ? ~0u : (1u << free) - 1;
  return {prefix->address, spread};
}

}  // namespace holdfast

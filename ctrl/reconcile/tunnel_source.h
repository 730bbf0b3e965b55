// SPDX-License-Identifier: Apache-2.0
// Which outer source the tunnels to a backend have: one address, or one of a prefix for each flow.
// Pure; any thread.
#pragma once

#include <cstdint>

#include "lib/config/config.h"
#include "lib/model/backend.h"

namespace holdfast {

struct TunnelSource {
  IpAddress address{};
  std::uint32_t spread = 0;  // Backend::source_spread
};

/// `found`: the source that configuration or route give; unspecified: there is none, and it stays
/// so.
[[nodiscard]] TunnelSource tunnel_source(const DataplaneConfig& config, Encapsulation encapsulation,
                                         const IpAddress& found);

}  // namespace holdfast

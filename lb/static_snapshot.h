// SPDX-License-Identifier: Apache-2.0
// A snapshot straight from the configuration, for a daemon without control plane: every backend is
// eligible and its next hop is the configured one. Pure.
#pragma once

#include <memory>
#include <span>

#include "lib/config/config.h"
#include "lib/model/seam.h"

namespace holdfast {

[[nodiscard]] std::unique_ptr<const Snapshot> static_snapshot(
    const Config& config, HashSeed seed, std::span<const PortDescription> ports);

}  // namespace holdfast

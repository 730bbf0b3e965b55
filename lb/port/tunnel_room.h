// SPDX-License-Identifier: Apache-2.0
// Whether the packets of clients still fit the links once they are in a tunnel. Pure; any thread.
#pragma once

#include <span>

#include "lb/port/kernel_interface.h"
#include "lib/base/result.h"
#include "lib/config/config.h"

namespace holdfast {

/// `interfaces`: by port; those of ports without a kernel interface are not looked at, since
/// nothing keeps to the MTU of a virtual device. Error: there is a backend for which no port that
/// may lead to it has an MTU of client_mtu and the tunnel's header. Only routes, which may change,
/// tell which port does: see PathNeeds for that.
[[nodiscard]] Result<void> check_tunnel_room(const Config& config,
                                             std::span<const KernelInterface> interfaces);

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// Whether a queue of an interface can have an AF_XDP socket of ours: DPDK's driver tells only that
// it failed. Control thread.
#pragma once

#include <string>

#include "lib/base/result.h"

namespace holdfast {

/// Binds a socket of its own for a moment. Error: another process has one on that queue. Anything
/// else that is wrong is not said here.
[[nodiscard]] Result<void> check_queue_is_free(const std::string& interface, unsigned queue);

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// The family of commands that read the data plane's counters: stats, drops.
#pragma once

#include "ctrl/command/command.h"

namespace holdfast {

[[nodiscard]] Command stats_command();
[[nodiscard]] Command drops_command();

}  // namespace holdfast

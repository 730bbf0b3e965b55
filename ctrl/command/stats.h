// SPDX-License-Identifier: Apache-2.0
// The command that shows the data plane's counters: stats.
#pragma once

#include "ctrl/command/command.h"

namespace holdfast {

[[nodiscard]] Command stats_command();

}  // namespace holdfast

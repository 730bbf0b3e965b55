// SPDX-License-Identifier: Apache-2.0
// The command about the configuration in force: config show.
#pragma once

#include "ctrl/command/command.h"

namespace holdfast {

[[nodiscard]] Command config_show_command();

}  // namespace holdfast

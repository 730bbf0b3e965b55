// SPDX-License-Identifier: Apache-2.0
// The command that looks at a configuration file: check. It runs in the client and needs no daemon.
#pragma once

#include "ctrl/command/command.h"

namespace holdfast {

[[nodiscard]] Command check_command();

}  // namespace holdfast

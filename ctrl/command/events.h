// SPDX-License-Identifier: Apache-2.0
// The command that tells what happened lately: events.
#pragma once

#include "ctrl/command/command.h"

namespace holdfast {

[[nodiscard]] Command events_command();

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// The family of commands about the daemon itself: status.
#pragma once

#include "ctrl/command/command.h"

namespace holdfast {

[[nodiscard]] Command status_command();

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// The command that tells why packets were dropped: drops.
#pragma once

#include "ctrl/command/command.h"

namespace holdfast {

[[nodiscard]] Command drops_command();

}  // namespace holdfast

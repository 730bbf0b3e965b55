// SPDX-License-Identifier: Apache-2.0
// The family of commands that change backends: backend drain, backend enable, backend
// weight.
#pragma once

#include "ctrl/command/command.h"

namespace holdfast {

[[nodiscard]] Command backend_drain_command();
[[nodiscard]] Command backend_enable_command();
[[nodiscard]] Command backend_weight_command();

}  // namespace holdfast

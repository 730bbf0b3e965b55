// SPDX-License-Identifier: Apache-2.0
// The family of commands about what is served and by whom: service list, pool show.
#pragma once

#include "ctrl/command/command.h"

namespace holdfast {

[[nodiscard]] Command service_list_command();
[[nodiscard]] Command pool_show_command();

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// What Command::run_here() returns. In the client only.
#pragma once

#include "ctrl/command/command.h"
#include "lib/protocol/json.h"

namespace holdfast {

/// What a command that runs in the client came to; `result` is rendered in any case.
struct LocalResult {
  ExitCode exit = ExitCode::done;
  Json result;
};

}  // namespace holdfast

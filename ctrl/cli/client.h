// SPDX-License-Identifier: Apache-2.0
// The client's end of the CLI protocol: connect, ask once, read answers. Blocking; for the one
// thread of `holdfast`.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "ctrl/command/command.h"
#include "lib/base/result.h"
#include "lib/protocol/message.h"

namespace holdfast {

/// What came of a request, or why there was no answer.
struct Asked {
  ExitCode exit = ExitCode::done;
  Json result{};  // exit == done
  Error error{};  // else
};

/// A daemon that is well answers at once; after its first event it may take any time for the next.
inline constexpr std::chrono::seconds kAnswerWithin{5};

/// Sends one request to the daemon at `socket_path` and waits for its end; `on_event` gets each
/// event as it comes (but for empty ones), and a failure of it ends the waiting.
[[nodiscard]] Asked ask(const std::string& socket_path, const Request& request,
                        const std::function<Result<void>(const Json& event)>& on_event);

}  // namespace holdfast

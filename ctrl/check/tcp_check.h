// SPDX-License-Identifier: Apache-2.0
// The check "tcp": a connection to the target's own address and port is accepted within the
// timeout. It ends with RST, so that thousands of checks leave no TIME_WAIT socket behind. Control
// thread.
#pragma once

#include <memory>

#include "ctrl/check/check.h"

namespace holdfast {

[[nodiscard]] std::unique_ptr<RunningCheck> start_tcp_check(Loop& loop, const CheckTarget& target,
                                                            const CheckConfig& settings,
                                                            CheckDone done);

}  // namespace holdfast

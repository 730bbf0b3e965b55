// SPDX-License-Identifier: Apache-2.0
// A configuration file from the disk: for programs that cannot go on without it. Any thread; blocks
// as the file does.
#pragma once

#include <string>

#include "lib/base/result.h"
#include "lib/config/config.h"

namespace holdfast {

/// The checked configuration, or an error whose message is complete: each fault with its place in a
/// line of its own, or why the file can not be read.
[[nodiscard]] Result<Config> read_config(const std::string& path);

}  // namespace holdfast

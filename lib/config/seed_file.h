// SPDX-License-Identifier: Apache-2.0
// The hash seed, which lies in a file of its own because it is a secret. Any thread.
#pragma once

#include <string>
#include <string_view>

#include "lib/base/result.h"
#include "lib/flow/flow_key.h"

namespace holdfast {

/// The content of a seed file: 16 hexadecimal digits, white space around them is ignored. Pure.
[[nodiscard]] Result<HashSeed> parse_seed(std::string_view text);

/// Reads the file at `path`; blocks as read_file() does. Errors have the path as `where` and the
/// codes of read_file(); with_seed_advice() (advice.h) adds what to do.
[[nodiscard]] Result<HashSeed> read_seed(const std::string& path);

}  // namespace holdfast

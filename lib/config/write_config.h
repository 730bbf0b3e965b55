// SPDX-License-Identifier: Apache-2.0
// The other way round: a Config as the text of a file. Pure; any thread.
#pragma once

#include <string>

#include "lib/config/config.h"

namespace holdfast {

/// Canonical TOML: sections in one order, every key that has a value, defaults too. Parsed with
/// `file` in no folder it gives `config` again. Holds no secret: of the hash seed only the file's
/// path. Requires: `config` came from parse_config without a fault.
[[nodiscard]] std::string write_config(const Config& config);

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// From text to a TOML tree, for any text whatever. Internal to lib/config.
#pragma once

#include <toml++/toml.h>
#include <string_view>

#include "lib/config/faults.h"

namespace holdfast::config {

/// An empty table and one fault when `text` is not TOML (https://toml.io/en/v1.0.0).
[[nodiscard]] toml::table parse_syntax(std::string_view text, Faults& faults);

}  // namespace holdfast::config

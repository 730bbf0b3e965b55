// SPDX-License-Identifier: Apache-2.0
// What an operator can do about a configuration file or a seed file that can not be read or used:
// the errors of read_file() and read_seed() with that said. Pure; any thread.
#pragma once

#include <string>

#include "lib/base/result.h"

namespace holdfast {

/// `error` has the file's path as `where`; its code stays.
[[nodiscard]] Error with_config_advice(Error error);

/// The same for the file that [dataplane] hash_seed_file of `config_path` names.
[[nodiscard]] Error with_seed_advice(Error error, const std::string& config_path);

}  // namespace holdfast

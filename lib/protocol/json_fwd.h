// SPDX-License-Identifier: Apache-2.0
// The name of JSON alone, for headers that only hand it on: json.h, which takes seconds to compile,
// has what can be done with it.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace holdfast {

/// Keys keep their order.
using Json = nlohmann::ordered_json;

}  // namespace holdfast

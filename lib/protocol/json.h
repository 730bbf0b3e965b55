// SPDX-License-Identifier: Apache-2.0
// JSON as the CLI protocol uses it: keys keep their order, so that what operators read with --json
// comes in the order in which it was written. Pure; any thread.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "lib/base/result.h"
#include "lib/protocol/json_fwd.h"

namespace holdfast {

/// Arrays and objects may lie this deep in each other; more is refused before parsing.
inline constexpr std::size_t kMaxJsonDepth = 32;

/// Parses one JSON text (strict, valid UTF-8 only). Never throws.
[[nodiscard]] Result<Json> parse_json(std::string_view text);

/// One line without the line end. Bytes that are not UTF-8 become U+FFFD. Never throws for a value
/// that parse_json made.
[[nodiscard]] std::string to_line(const Json& value);

/// The text for `key`, or empty: an absent key and one of another type look the same.
[[nodiscard]] std::string text_at(const Json& object, std::string_view key);
/// The number for `key`, or `otherwise`.
[[nodiscard]] std::uint64_t number_at(const Json& object, std::string_view key,
                                      std::uint64_t otherwise = 0);
[[nodiscard]] double real_at(const Json& object, std::string_view key, double otherwise = 0);
[[nodiscard]] bool flag_at(const Json& object, std::string_view key);
/// The array or object for `key`, or an empty array.
[[nodiscard]] const Json& list_at(const Json& object, std::string_view key);

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// How control code reports failure: a value, or an Error that an operator can act on.
// The data path uses Verdict (lib/model/verdict.h) instead and never builds strings.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace holdfast {

/// Why something was refused. `message` is one sentence that says what to do; `where` is a place in
/// the operator's input ("holdfast.toml:12:3", "pool web") or empty.
struct Error {
  std::string message;
  std::string where{};
  /// Stable word for programs ("refused", "not_found", "permission", "busy").
  std::string code = "refused";

  [[nodiscard]] std::string text() const {
    return where.empty() ? message : where + ": " + message;
  }
};

/// tl::expected has std::expected's names, which C++20 lacks.
template <class T>
using Result = tl::expected<T, Error>;

/// Shorthand for `return fail("...", "where");`.
[[nodiscard]] inline tl::unexpected<Error> fail(std::string message, std::string where = {},
                                                std::string code = "refused") {
  return tl::unexpected<Error>(Error{std::move(message), std::move(where), std::move(code)});
}

}  // namespace holdfast

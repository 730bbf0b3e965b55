// SPDX-License-Identifier: Apache-2.0
// `holdfast replay` is a program of its own, since it brings the data path along, which the client
// does not link. For the one thread of `holdfast`.
#pragma once

#include <optional>

namespace holdfast {

/// If the words ask for `replay`, becomes holdfast-replay and does not return; or returns the exit
/// code when that is not there. Empty: they ask for something else.
[[nodiscard]] std::optional<int> become_replay(int argc, char** argv);

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// What a path must be for a Unix socket to lie there; the same for configuration, daemon and
// client. Pure; any thread.
#pragma once

#include <cstddef>

namespace holdfast {

/// Bytes. sockaddr_un holds 108, the last of them a zero.
inline constexpr std::size_t kMaxSocketPath = 107;

}  // namespace holdfast

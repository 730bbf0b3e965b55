// SPDX-License-Identifier: Apache-2.0
// A whole file as text. Blocks as the file does (a FIFO waits for its writer); any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "lib/base/result.h"

namespace holdfast {

/// What we read, and how much of it can make sense.
struct FileKind {
  std::string_view what;  // "a configuration"
  std::size_t most;       // bytes
  std::string_view most_text;
};
inline constexpr FileKind kConfigFile{"a configuration", 16 * 1024 * 1024, "16 MiB"};
/// 16 digits; the rest is for white space.
inline constexpr FileKind kSeedFile{"a hash seed", 4096, "4 KiB"};

/// Errors have the path as `where`. Code "not_found": there is no such file; "permission": it may
/// not be read; "refused": it can never be read as such a file.
[[nodiscard]] Result<std::string> read_file(const std::string& path, const FileKind& kind);

}  // namespace holdfast

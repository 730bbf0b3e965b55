// SPDX-License-Identifier: Apache-2.0
// Text from outside in our own messages: fit for a terminal and a log, and never long. Every
// message that repeats what an operator, a file or a client said passes it through here. Pure; any
// thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace holdfast {

/// Bytes of a name or value that a message repeats; our own names have at most 64.
inline constexpr std::size_t kMaxShown = 64;
/// Bytes of a sentence that repeats words of its own choice, such as those of a library.
inline constexpr std::size_t kMaxSentence = 512;

/// `text` with each byte as `\xNN` that is no UTF-8 or belongs to a character which would steer a
/// terminal: controls, line separators, changes of the writing direction. After `most` bytes of it,
/// counted at a character's start, the rest is "...". Escaping what is escaped changes nothing.
[[nodiscard]] std::string printable(std::string_view text, std::size_t most = kMaxShown);

/// The same in double quotes.
[[nodiscard]] std::string in_quotes(std::string_view text);

/// For paths, which are of use only when whole: cut only if the kernel would not take it either.
[[nodiscard]] std::string printable_path(std::string_view path);

/// The first control character of `text` (Unicode's category Cc, which has NUL), or empty.
[[nodiscard]] std::string_view find_control(std::string_view text);

}  // namespace holdfast

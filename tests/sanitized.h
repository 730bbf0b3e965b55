// SPDX-License-Identifier: Apache-2.0
// Whether this is built with a sanitizer. Random tests then run a part of their rounds: each takes
// several times as long, and shows its memory faults in the first ones.
#pragma once

namespace holdfast {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
#else
inline constexpr bool kSanitized = false;
#endif

/// `rounds`, or a quarter of them.
[[nodiscard]] constexpr unsigned rounds(unsigned all) { return kSanitized ? all / 4 : all; }

}  // namespace holdfast

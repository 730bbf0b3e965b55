// SPDX-License-Identifier: Apache-2.0
// What our programs say to whoever started them. What could not be written is an error: a full disk
// or a reader that left must not look like success. For the main thread of a program.
#pragma once

#include <string_view>

#include "lib/base/result.h"

namespace holdfast {

/// Call it first of all in main(). Standard descriptors that are closed (`>&-`) stay unusable but
/// are taken, so that no socket gets their number and our words are not sent into it. And a pipe
/// whose reader left becomes an error of write_out() instead of the program's end (SIGPIPE).
void keep_standard_descriptors();

/// Writes all of `text` to standard output now. Error code "no_output".
[[nodiscard]] Result<void> write_out(std::string_view text);

/// To standard error; there is nobody to tell if that fails.
void write_error(std::string_view text);

}  // namespace holdfast

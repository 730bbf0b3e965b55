// SPDX-License-Identifier: Apache-2.0
// Lines of the log, from control code. They come as finished text: a call that fills values in
// itself makes spdlog's templates anew in each file, seconds each with sanitizers. Any thread.
#pragma once

#include <cstdint>
#include <string_view>

namespace holdfast {

enum class LogLevel : std::uint8_t { debug, info, warning, error };

/// To the logger that the program's main chose.
void log_line(LogLevel level, std::string_view line);

}  // namespace holdfast

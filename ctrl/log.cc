// SPDX-License-Identifier: Apache-2.0
#include "ctrl/log.h"

#include <spdlog/spdlog.h>

namespace holdfast {
namespace {

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warning:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

}  // namespace

void log_line(LogLevel level, std::string_view line) {
  spdlog::default_logger_raw()->log(level_of(level),
                                    spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace holdfast

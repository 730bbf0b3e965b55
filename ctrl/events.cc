// SPDX-License-Identifier: Apache-2.0
#include "ctrl/events.h"

#include <fmt/format.h>

#include <utility>

#include "ctrl/log.h"
#include "ctrl/loop/boot_clock.h"
#include "lib/base/printable.h"

namespace holdfast {
namespace {

LogLevel level_of(Severity severity) {
  switch (severity) {
    case Severity::info:
      return LogLevel::info;
    case Severity::warning:
      return LogLevel::warning;
    case Severity::error:
      return LogLevel::error;
  }
  return LogLevel::error;
}

/// Fit for a terminal and of a bounded length, whatever was escaped on the way.
std::string bounded(const std::string& text) {
  return printable(printable(text, kMaxSentence), kMaxSentence);
}

}  // namespace

void Events::add(EventKind kind, std::string subject, std::string text, Severity severity) {
  subject = bounded(subject);
  text = bounded(text);
  log_line(level_of(severity), fmt::format("{} {}: {}", name_of(kind), subject, text));
  kept_.push_back({.number = ++newest_,
                   .at = boot_now(),
                   .wall_time = std::chrono::system_clock::now(),
                   .kind = kind,
                   .severity = severity,
                   .subject = std::move(subject),
                   .text = std::move(text)});
  if (kept_.size() > kKept) kept_.pop_front();
}

}  // namespace holdfast

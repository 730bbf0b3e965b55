// SPDX-License-Identifier: Apache-2.0
#include "ctrl/events.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "ctrl/loop/boot_clock.h"
#include "lib/base/printable.h"

namespace holdfast {
namespace {

spdlog::level::level_enum level_of(Severity severity) {
  switch (severity) {
    case Severity::info:
      return spdlog::level::info;
    case Severity::warning:
      return spdlog::level::warn;
    case Severity::error:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

/// Fit for a terminal and of a bounded length, whatever was escaped on the way.
std::string bounded(const std::string& text) {
  return printable(printable(text, kMaxSentence), kMaxSentence);
}

}  // namespace

void Events::add(EventKind kind, std::string subject, std::string text, Severity severity) {
  subject = bounded(subject);
  text = bounded(text);
  spdlog::log(level_of(severity), "{} {}: {}", name_of(kind), subject, text);
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

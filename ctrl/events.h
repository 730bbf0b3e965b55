// SPDX-License-Identifier: Apache-2.0
// What happened lately: the one place where an event is both written to the log and kept, for
// `holdfast events`. A bounded ring: the newest kKept events, each with its number, so that who
// follows sees where some were missed. Owned by ControlPlane; control thread only.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "lib/base/instant.h"

namespace holdfast {

/// What an event is about.
enum class EventKind : std::uint8_t {
  daemon,        // holdfastd itself
  command,       // somebody asked for a change
  backend,       // its state in a pool
  pool,          // who gets its new flows
  drain,         // begun, changed, ended
  weight,        // changed at run time
  worker,        // a thread of the data plane
  announcement,  // a VIP, or the BGP speaker that announces it
};

[[nodiscard]] constexpr std::string_view name_of(EventKind kind) {
  switch (kind) {
    case EventKind::daemon:
      return "daemon";
    case EventKind::command:
      return "command";
    case EventKind::backend:
      return "backend";
    case EventKind::pool:
      return "pool";
    case EventKind::drain:
      return "drain";
    case EventKind::weight:
      return "weight";
    case EventKind::worker:
      return "worker";
    case EventKind::announcement:
      return "announcement";
  }
  return "?";
}

enum class Severity : std::uint8_t {
  info,
  warning,  // less can be served than before, or something needs an eye
  error,    // something is not served
};

[[nodiscard]] constexpr std::string_view name_of(Severity severity) {
  switch (severity) {
    case Severity::info:
      return "info";
    case Severity::warning:
      return "warning";
    case Severity::error:
      return "error";
  }
  return "?";
}

struct Event {
  std::uint64_t number = 0;  // from 1, without gaps, in the order of happening
  Instant at{};              // boot time
  std::chrono::system_clock::time_point wall_time{};
  EventKind kind = EventKind::daemon;
  Severity severity = Severity::info;
  std::string subject{};  // "web/b1 (192.0.2.1)"
  std::string text{};     // "eligible -> down: check failed 2 times: connection refused"
};

class Events {
 public:
  static constexpr std::size_t kKept = 1000;

  /// Logs "KIND SUBJECT: TEXT" and keeps it with the time of now. Both words are made printable and
  /// cut to kMaxSentence bytes (lib/base/printable.h).
  void add(EventKind kind, std::string subject, std::string text,
           Severity severity = Severity::info);

  /// Oldest first; the numbers of neighbours differ by one.
  [[nodiscard]] const std::deque<Event>& kept() const { return kept_; }
  /// Number of the newest event; 0: there was none.
  [[nodiscard]] std::uint64_t newest() const { return newest_; }

 private:
  std::deque<Event> kept_;
  std::uint64_t newest_ = 0;
};

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// What a kind of health check is: something that starts, has a deadline, and ends with one outcome.
// A new kind is one file and a line in list.cc; when to run it and what follows from the outcome is
// not its business (checker.h, state/health.h). Control thread only.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "ctrl/loop/loop.h"
#include "lib/config/config.h"
#include "lib/net/address.h"

namespace holdfast {

/// What is checked. One target is checked once, however many pools share it.
struct CheckTarget {
  IpAddress address{};
  std::uint16_t port = 0;
  std::string check;  // the name of its [[check]]

  friend auto operator<=>(const CheckTarget&, const CheckTarget&) = default;
};

struct CheckOutcome {
  enum class Kind : std::uint8_t {
    passed,
    failed,   // says something about the target
    not_run,  // our own trouble (no descriptor left): says nothing about the target
  };
  Kind kind = Kind::failed;
  std::string why{};  // unless passed; completes "check failed: ", without a full stop
};

/// A check under way. Destroying it gives it up: `done` is not called any more.
class RunningCheck {
 public:
  virtual ~RunningCheck() = default;
};

/// Called once, from the loop, never from within start. It may destroy the RunningCheck.
using CheckDone = std::function<void(CheckOutcome outcome)>;

struct CheckType {
  CheckKind kind{};
  std::string_view name;
  /// Starts a check of `target` that must be done within `settings.timeout`.
  std::unique_ptr<RunningCheck> (*start)(Loop& loop, const CheckTarget& target,
                                         const CheckConfig& settings, CheckDone done);
};

/// The list of all kinds.
[[nodiscard]] const CheckType& check_type(CheckKind kind);

}  // namespace holdfast

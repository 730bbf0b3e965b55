// SPDX-License-Identifier: Apache-2.0
// An operator's drain of one backend of a pool: no new flows, those that exist stay until they end
// or the deadline passes. Pure; owned by the control thread.
#pragma once

#include <chrono>
#include <optional>

#include "ctrl/state/deadline.h"

namespace holdfast {

class Drain {
 public:
  /// UDP has no end that a load balancer could see, so without a deadline it gets this one: long
  /// enough for HTTP/3 streams, short enough that a drain ends (field reports: clients with a fixed
  /// source port kept drained backends busy for ever).
  static constexpr std::chrono::minutes kUdpLimit{15};

  /// Starts a drain; during one, only replaces its deadline. `timeout` counts from now; none: TCP
  /// stays until it ends.
  void start(Instant now, std::optional<std::chrono::milliseconds> timeout);
  /// Ends the drain: the backend may get new flows again.
  void enable() { draining_ = false; }

  [[nodiscard]] bool draining() const { return draining_; }
  /// When the drain began. Requires: draining().
  [[nodiscard]] Instant since() const { return since_; }
  /// Requires: draining().
  [[nodiscard]] Deadline deadline() const { return deadline_; }

  /// Until when placed flows stay; nullopt: without end. Requires: draining().
  [[nodiscard]] Deadline tcp_until() const { return deadline_; }
  [[nodiscard]] Instant udp_until() const;

 private:
  bool draining_ = false;
  Instant since_{};
  Deadline deadline_;
};

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// The order in which a daemon stops, so that no packet is lost to it: routers are asked to prefer
// others (graceful shutdown, RFC 8326), the VIPs are withdrawn, and packets are forwarded until the
// routers have turned away. Each wait is bounded, whatever the speaker does. With nothing announced
// there is nothing to wait for: a host that is reached by static routes stops at once, because a
// router that does not know would go on sending however long it waited. Pure; owned by
// ControlPlane.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "ctrl/announce/vip_route.h"
#include "ctrl/announce/wanted.h"
#include "ctrl/state/deadline.h"

namespace holdfast {

class StopOrder {
 public:
  static constexpr std::chrono::seconds kGracefulShutdown{2};
  static constexpr std::chrono::seconds kWithdraw{2};  // until the withdrawal is confirmed
  static constexpr std::chrono::seconds kHurriedWithdraw{1};

  enum class Step : std::uint8_t { serving, graceful_shutdown, withdrawing, lingering, done };

  explicit StopOrder(std::chrono::milliseconds linger) : linger_(linger) {}

  /// A signal to stop. The second one skips the waits, but still withdraws.
  void request(Instant now);
  /// What is so now: `announced`: whether the speaker has a route of ours; `reachable`: it answers.
  /// Call after request(), whenever one of these has changed, and at deadline().
  void update(Presence announced, bool reachable, Instant now);

  [[nodiscard]] Step step() const { return step_; }
  [[nodiscard]] Deadline deadline() const { return deadline_; }
  /// What the announcer is to do in this step, Step::serving apart.
  [[nodiscard]] AnnouncePhase phase() const {
    return step_ == Step::graceful_shutdown ? AnnouncePhase::leaving : AnnouncePhase::withdrawn;
  }
  /// The withdrawal was not confirmed in time, nor since.
  [[nodiscard]] bool not_withdrawn() const { return not_withdrawn_; }
  /// For status and log: "withdrawing the VIPs"; empty while serving.
  [[nodiscard]] std::string text(Instant now) const;

 private:
  void enter(Step step, Deadline deadline);

  std::chrono::milliseconds linger_;
  Step step_ = Step::serving;
  Deadline deadline_{};
  bool requested_ = false;
  bool hurried_ = false;
  bool was_announced_ = false;  // perhaps, at some time since the request
  bool not_withdrawn_ = false;
};

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
#include "ctrl/announce/stop_order.h"

#include <fmt/format.h>

#include <algorithm>

namespace holdfast {

void StopOrder::enter(Step step, Deadline deadline) {
  step_ = step;
  deadline_ = deadline;
}

void StopOrder::request(Instant now) {
  hurried_ = requested_;
  requested_ = true;
  if (!hurried_) return;
  switch (step_) {
    case Step::serving:
    case Step::done:
      break;
    case Step::graceful_shutdown:
    case Step::withdrawing:
      enter(Step::withdrawing,
            earlier(now + kHurriedWithdraw, step_ == Step::withdrawing ? deadline_ : std::nullopt));
      break;
    case Step::lingering:
      enter(Step::done, {});
      break;
  }
}

void StopOrder::update(Presence presence, bool reachable, Instant now) {
  if (!requested_) return;
  const bool announced = presence != Presence::absent;  // what is not known may be there
  was_announced_ = was_announced_ || presence == Presence::maybe;
  const bool late = deadline_ && now >= *deadline_;
  switch (step_) {
    case Step::serving:
      if (!announced) {
        enter(Step::done, {});
      } else if (reachable && !hurried_ && was_announced_) {
        enter(Step::graceful_shutdown, now + kGracefulShutdown);
      } else {
        enter(Step::withdrawing, now + (hurried_ ? kHurriedWithdraw : kWithdraw));
      }
      break;
    case Step::graceful_shutdown:
      if (!announced) {
        enter(Step::lingering, now + linger_);  // withdrawn meanwhile: no backend was left
      } else if (late) {
        enter(Step::withdrawing, now + kWithdraw);
      }
      break;
    case Step::withdrawing:
      if (announced && !late) break;
      not_withdrawn_ = announced;
      if (hurried_ || (!announced && !was_announced_)) {
        enter(Step::done, {});
      } else {
        enter(Step::lingering, now + linger_);
      }
      break;
    case Step::lingering:
      if (late) {
        enter(Step::done, {});
      } else if (not_withdrawn_ && !announced) {
        // The speaker came back. Only now do routers turn away.
        not_withdrawn_ = false;
        enter(Step::lingering, now + linger_);
      }
      break;
    case Step::done:
      break;
  }
}

std::string StopOrder::text(Instant now) const {
  const auto left =
      std::chrono::duration<double>(deadline_ ? std::max(*deadline_ - now, Instant{0}) : Instant{0})
          .count();
  switch (step_) {
    case Step::serving:
      return {};
    case Step::graceful_shutdown:
      return fmt::format("routers are asked to prefer others, the withdrawal is in {:.1f} s", left);
    case Step::withdrawing:
      return "withdrawing the VIPs";
    case Step::lingering:
      return fmt::format("{}, packets are forwarded for another {:.1f} s",
                         not_withdrawn_ ? "the withdrawal is not confirmed" : "withdrawn", left);
    case Step::done:
      return "done";
  }
  return {};
}

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
#include "ctrl/command/drain_follow.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ctrl/command/command.h"
#include "ctrl/command/common.h"

namespace holdfast {
namespace {

constexpr std::chrono::milliseconds kLook{100};
constexpr std::chrono::seconds kTell{1};
/// No active flow for this long is empty: counters of a sleeping worker are a little old, and a
/// handshake that was under way when the drain began becomes an active flow a round trip later.
constexpr std::chrono::seconds kSettled{1};

class DrainFollow : public std::enable_shared_from_this<DrainFollow> {
 public:
  DrainFollow(ControlPlane& control, FollowRequest request, std::shared_ptr<Reply> reply)
      : control_(control),
        request_(std::move(request)),
        reply_(std::move(reply)),
        started_(boot_now()) {}

  void start() {
    // The timer holds this object until it ends.
    timer_ = control_.loop().call_every(kLook, "following a drain",
                                        [self = shared_from_this()] { self->look(); });
    look();
  }

 private:
  void look() {
    if (reply_->gone()) return end();
    const auto now = boot_now();
    const auto left = flows_left(control_, request_.backends);
    if (!all_draining()) {
      reply_->error({.message = fmt::format("the drain was ended by an enable after {:.1f} s, with "
                                            "{} active flows left",
                                            seconds(now), left.active)});
      return end();
    }
    if (left.active > 0) {
      empty_since_.reset();
    } else if (!empty_since_) {
      empty_since_ = told_ ? now : started_;  // at the first look: there was none
    }
    if (empty_since_ && now - *empty_since_ >= kSettled) {
      reply_->result({{"empty", true},
                      {"after_seconds", seconds(*empty_since_)},
                      {"confirmed_after_seconds", seconds(now)},
                      {"active_flows", 0},
                      {"backends", left.backends}});
      return end();
    }
    if (left.active > 0 && deadline_passed(now)) {
      reply_->result({{"empty", false},
                      {"after_seconds", seconds(now)},
                      {"active_flows", left.active},
                      {"backends", left.backends}});
      return end();
    }
    // Without active flows it is only a moment until that counts as empty.
    if (left.active > 0 && request_.wait_for && now - started_ >= *request_.wait_for) {
      reply_->error({.message = fmt::format("not empty after {:.1f} s: {} active flows are left; "
                                            "the drain goes on",
                                            seconds(now), left.active),
                     .code = std::string(kWaitNotFulfilled)});
      return end();
    }
    if (!told_ || now - *told_ >= kTell) {
      told_ = now;
      reply_->event(
          {{"draining_seconds", seconds(now)},
           {"active_flows", left.active},
           {"empty_since_seconds", empty_since_ ? Json(seconds(*empty_since_)) : Json(nullptr)},
           {"backends", left.backends}});
    }
  }

  [[nodiscard]] double seconds(Instant now) const {
    return std::chrono::duration<double>(now - started_).count();
  }

  [[nodiscard]] const Drain* drain_of(const MembershipKey& key) const {
    const auto& all = control_.state().memberships;
    const auto it = all.find(key);
    return it == all.end() ? nullptr : &it->second.drain;
  }

  /// A backend that is gone from the configuration has no flows and does not end the wait.
  [[nodiscard]] bool all_draining() const {
    return std::all_of(request_.backends.begin(), request_.backends.end(), [&](const auto& one) {
      const Drain* drain = drain_of(one.key);
      return drain == nullptr || drain->draining();
    });
  }

  /// From here on placed flows leave by themselves, each at its next packet.
  [[nodiscard]] bool deadline_passed(Instant now) const {
    return std::all_of(request_.backends.begin(), request_.backends.end(), [&](const auto& one) {
      const Drain* drain = drain_of(one.key);
      return drain != nullptr && drain->deadline() && now >= *drain->deadline();
    });
  }

  void end() {
    control_.loop().cancel(std::exchange(timer_, 0));
    reply_.reset();
  }

  ControlPlane& control_;
  FollowRequest request_;
  std::shared_ptr<Reply> reply_;
  Instant started_;
  std::optional<Instant> told_;
  std::optional<Instant> empty_since_;
  Loop::TimerId timer_ = 0;
};

}  // namespace

FlowsLeft flows_left(const ControlPlane& control, const std::vector<FollowedBackend>& backends) {
  const auto counters = control.stats().read_stats().backends;
  FlowsLeft left;
  for (const auto& backend : backends) {
    Json row{{"backend", backend.label}};
    const auto mine = counters_of(counters, backend.number);
    add_counters(row, mine);
    left.active += gauge(mine.active);
    left.backends.push_back(std::move(row));
  }
  return left;
}

void follow_drain(ControlPlane& control, FollowRequest request, std::shared_ptr<Reply> reply) {
  std::make_shared<DrainFollow>(control, std::move(request), std::move(reply))->start();
}

}  // namespace holdfast

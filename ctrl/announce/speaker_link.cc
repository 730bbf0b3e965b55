// SPDX-License-Identifier: Apache-2.0
#include "ctrl/announce/speaker_link.h"

#include <algorithm>
#include <utility>

namespace holdfast {

bool SpeakerLink::gone() const {
  // The kernel's words for it, which gRPC hands on: of a port, and of a Unix socket. Without them
  // (no way to the host, a connection that broke) it may live on.
  const auto says = [this](std::string_view words) {
    return why_.find(words) != std::string::npos;
  };
  return state_ == SpeakerState::unreachable &&
         (says("onnection refused") || says("No such file or directory"));
}

SpeakerLink::Effect SpeakerLink::become(SpeakerState state, std::string why, Instant now) {
  const bool was_up = up();
  if (state_ != state) since_ = now;
  state_ = state;
  why_ = std::move(why);
  trusted_ = state == SpeakerState::up;
  if (was_up == up()) return Effect::none;
  return was_up ? Effect::went_away : Effect::came_up;
}

SpeakerLink::Effect SpeakerLink::on_identity(const Result<BgpIdentity>& answer, Instant now) {
  if (!answer) {
    const auto& error = answer.error();
    return become(error.code == "deadline" ? SpeakerState::hung : SpeakerState::unreachable,
                  error.message, now);
  }
  if (answer->as == 0) {
    next_ = now + kNotStartedPeriod;
    return become(SpeakerState::not_started, "BGP is not started in it", now);
  }
  const bool somebody_else = answer->as != identity_.as || answer->router_id != identity_.router_id;
  identity_ = *answer;
  const auto effect = become(SpeakerState::up, {}, now);
  return somebody_else ? Effect::came_up : effect;
}

void SpeakerLink::on_restarted(Instant now) {
  trusted_ = false;
  next_ = now;
}

SpeakerLink::Effect SpeakerLink::on_lost(const Error& error, Instant now) {
  next_ = now;
  return become(SpeakerState::unreachable, error.message, now);
}

void SpeakerLink::on_failure(const Error& error, Instant now) {
  if (error.code == "unreachable" || error.code == "deadline") next_ = std::min(next_, now);
}

}  // namespace holdfast

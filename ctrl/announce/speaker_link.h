// SPDX-License-Identifier: Apache-2.0
// Whether the speaker is there: what identify() answered, and what the stream of news said. Pure;
// owned by Announcer.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "ctrl/announce/speaker.h"
#include "ctrl/state/deadline.h"

namespace holdfast {

enum class SpeakerState : std::uint8_t {
  connecting,   // nothing is known yet
  unreachable,  //
  hung,         // it is there, but does not answer in time
  not_started,  // it answers, but BGP is not started in it
  up,
};

[[nodiscard]] constexpr std::string_view name_of(SpeakerState state) {
  switch (state) {
    case SpeakerState::connecting:
      return "connecting";
    case SpeakerState::unreachable:
      return "unreachable";
    case SpeakerState::hung:
      return "hung";
    case SpeakerState::not_started:
      return "not started";
    case SpeakerState::up:
      return "up";
  }
  return "?";
}

class SpeakerLink {
 public:
  static constexpr std::chrono::seconds kPeriod{1};
  static constexpr std::chrono::milliseconds kNotStartedPeriod{250};

  explicit SpeakerLink(Instant now) : since_(now), next_(now) {}

  /// What an answer means for all that is known of the speaker.
  enum class Effect : std::uint8_t {
    none,
    came_up,    // up from now on, or somebody else: nothing that was read before holds
    went_away,  // no longer up
  };
  Effect on_identity(const Result<BgpIdentity>& answer, Instant now);
  /// The stream of news began: ask again before anything is believed.
  void on_restarted(Instant now);
  /// The stream ended.
  Effect on_lost(const Error& error, Instant now);
  /// Some other call failed: ask now who is there.
  void on_failure(const Error& error, Instant now);

  /// It answers, and has since the last restart.
  [[nodiscard]] bool up() const { return state_ == SpeakerState::up && trusted_; }
  [[nodiscard]] SpeakerState state() const { return state_; }
  [[nodiscard]] Instant since() const { return since_; }
  /// Nobody listens where it should be: it has ended, and its RIB with it.
  [[nodiscard]] bool gone() const;
  /// Why it is not up: the speaker's or gRPC's own words.
  [[nodiscard]] const std::string& why() const { return why_; }
  [[nodiscard]] const BgpIdentity& identity() const { return identity_; }
  /// When to ask who it is.
  [[nodiscard]] Instant next() const { return next_; }
  void on_asked(Instant now) { next_ = now + kPeriod; }

 private:
  Effect become(SpeakerState state, std::string why, Instant now);

  SpeakerState state_ = SpeakerState::connecting;
  Instant since_;
  Instant next_;
  bool trusted_ = false;
  std::string why_{};
  BgpIdentity identity_{};
};

}  // namespace holdfast

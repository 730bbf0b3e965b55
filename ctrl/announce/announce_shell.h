// SPDX-License-Identifier: Apache-2.0
// The announcer at work: performs what the pure Announcer asks for on a real BgpSpeaker, brings the
// answers back, keeps its timer, and passes its events on. Owned by ControlPlane, control thread
// only.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "ctrl/announce/announcer.h"
#include "ctrl/announce/speaker.h"
#include "ctrl/events.h"
#include "ctrl/loop/loop.h"

namespace holdfast {

class AnnounceShell {
 public:
  /// Starts at once. `name` is the speaker's in texts; `moved` is called when something may have
  /// changed in what announcer() says. `events` outlives this.
  AnnounceShell(Loop& loop, std::unique_ptr<BgpSpeaker> speaker, std::string name, Events& events,
                std::function<void()> moved);
  ~AnnounceShell();
  AnnounceShell(const AnnounceShell&) = delete;
  AnnounceShell& operator=(const AnnounceShell&) = delete;

  void want(const WantedVips& wanted);
  /// Announcer::leave(); what is wanted from now on comes with want().
  void leave() { announcer_.leave(); }
  [[nodiscard]] const Announcer& announcer() const { return announcer_; }

 private:
  void turn();
  void perform(const Ask& ask);
  template <class T>
  BgpSpeaker::Answer<T> answer_to(AskNumber number);

  Loop& loop_;
  Events& events_;
  Announcer announcer_;
  std::function<void()> moved_;
  Loop::TimerId timer_ = 0;
  std::unique_ptr<BgpSpeaker> speaker_;  // last: after it no callback comes
};

}  // namespace holdfast

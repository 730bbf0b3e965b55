// SPDX-License-Identifier: Apache-2.0
// A BgpSpeaker without BGP: a SpeakerModel behind the control loop, with answers that come later as
// a real one's do, and a stream of news that breaks and returns. Control thread only.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "ctrl/loop/loop.h"
#include "tests/dsl/speaker_model.h"

namespace holdfast {

class FakeSpeaker : public BgpSpeaker {
 public:
  static constexpr std::chrono::milliseconds kAnswer{2};
  static constexpr std::chrono::milliseconds kReconnect{500};

  /// `changed` is called after each add and remove.
  explicit FakeSpeaker(Loop& loop, std::function<void(const SpeakerModel&)> changed = {})
      : loop_(loop), changed_(std::move(changed)) {}
  ~FakeSpeaker() override { *alive_ = false; }

  [[nodiscard]] SpeakerModel& model() { return model_; }
  void kill() {
    model_.life = SpeakerModel::Life::absent;
    model_.rib.clear();
    later(kAnswer, [this] { news_.lost({.message = "stream ended", .code = "unreachable"}); });
  }
  void start_again() {
    model_.restart_empty();
    later(kReconnect, [this] { news_.restarted(); });
  }
  void establish(bool established) {
    for (auto& [address, peer] : model_.peers) peer.established = established;
    later(kAnswer, [this] { news_.changed(); });
  }

  void identify(Answer<BgpIdentity> answer) override {
    give(std::move(answer), model_.identify(), std::chrono::milliseconds(500));
  }
  void list_peers(Answer<std::vector<BgpPeer>> answer) override {
    give(std::move(answer), model_.list_peers());
  }
  void add(const Announcement& announcement, std::uint32_t /*own_as*/,
           Answer<void> answer) override {
    give(std::move(answer), model_.add(announcement));
    if (changed_) changed_(model_);
  }
  void remove(const IpAddress& vip, Answer<void> answer) override {
    give(std::move(answer), model_.remove(vip));
    if (changed_) changed_(model_);
  }
  void list_rib(Family family, std::vector<IpAddress> vips,
                Answer<std::vector<Announcement>> answer) override {
    give(std::move(answer), model_.list_rib(family, vips));
  }
  void list_sent(const IpAddress& peer, Family family, std::vector<IpAddress> vips,
                 Answer<std::vector<IpAddress>> answer) override {
    give(std::move(answer), model_.list_sent(peer, family, vips));
  }
  void watch(News news) override {
    news_ = std::move(news);
    later(kAnswer, [this] { news_.restarted(); });
  }

 private:
  void later(std::chrono::milliseconds delay, std::function<void()> what) {
    loop_.call_after(delay, "the fake speaker", [alive = alive_, what = std::move(what)] {
      if (*alive) what();
    });
  }
  template <class T>
  void give(Answer<T> answer, Result<T> result,
            std::chrono::milliseconds deadline = std::chrono::seconds(1)) {
    const bool hung = model_.life == SpeakerModel::Life::hung;
    later(hung ? deadline : kAnswer,
          [answer = std::move(answer), result = std::move(result)] { answer(result); });
  }

  Loop& loop_;
  std::function<void(const SpeakerModel&)> changed_;
  SpeakerModel model_{};
  News news_{};
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace holdfast

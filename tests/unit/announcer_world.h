// SPDX-License-Identifier: Apache-2.0
// An Announcer and a little gobgpd in simulated time: questions and answers travel, the stream of
// news begins and ends as gRPC's would, and nothing sleeps.
#pragma once

#include <functional>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <variant>

#include "ctrl/announce/announcer.h"
#include "tests/catch.h"
#include "tests/dsl/speaker_model.h"

namespace holdfast::world {

using namespace std::chrono_literals;

inline IpAddress ip(std::string_view text) { return IpAddress::parse(text).value(); }

inline const IpAddress kVip4 = ip("203.0.113.10");
inline const IpAddress kVip6 = ip("2001:db8::10");
inline const IpAddress kForeign = ip("198.51.100.77");
inline const IpAddress kPeer = ip("192.0.2.1");

inline Announcement route_of(const IpAddress& vip) {
  return {.vip = vip, .next_hop = ip(vip.is_v4() ? "192.0.2.5" : "2001:db8:1::5")};
}

struct World {
  SpeakerModel speaker;
  Instant now = 1000s;
  Announcer announcer{"gobgpd at test", now};
  std::map<IpAddress, WantedVip> wanted{};
  std::vector<std::string> log{};

  std::chrono::nanoseconds travel = 1ms;     // one way
  std::chrono::milliseconds deadline = 1s;   // of a call
  std::chrono::milliseconds reconnect = 1s;  // until the stream is tried again, at the most
  bool stream = false;
  Instant next_connect{};
  bool lose_answers = false;
  // Changes that came to a frozen speaker: it does them when it goes on, after their deadline.
  std::vector<std::function<void()>> held_back{};
  unsigned blind_removals = 0;  // of those
  std::multimap<Instant, std::function<void()>> mail{};
  std::map<std::size_t, unsigned> open{};  // questions under way, by kind
  std::uint32_t last_own_as = 0;           // that came with an add

  World() {
    speaker.connect(
        {.address = kPeer, .as = 64513, .established = true, .ipv4 = true, .ipv6 = true});
    for (const auto& vip : {kVip4, kVip6}) not_wanted(vip);
  }

  // What the control plane wants.
  void want(const Announcement& announcement) {
    wanted[announcement.vip] = {.announcement = announcement, .own = true};
    announcer.want(wanted, now);
  }
  void want(const IpAddress& vip) { want(route_of(vip)); }
  void not_wanted(const IpAddress& vip, std::string why = "no eligible backend in pool web") {
    wanted[vip] = {.why_not = std::move(why), .own = true};
    announcer.want(wanted, now);
  }

  /// What the control plane does at the end: nothing is wanted any more.
  void leave() {
    announcer.leave();
    for (const auto& vip : {kVip4, kVip6}) not_wanted(vip, "stopping");
  }

  // What becomes of the speaker.
  void kill() {
    held_back.clear();
    speaker.life = SpeakerModel::Life::absent;
    speaker.rib.clear();
    if (stream) post(travel, [this] { lost(); });
  }
  void start_again() {
    speaker.restart_empty();
    next_connect = now + reconnect;
  }
  void freeze() { speaker.life = SpeakerModel::Life::hung; }
  void thaw() {
    if (speaker.life != SpeakerModel::Life::hung) return;
    speaker.life = SpeakerModel::Life::running;
    for (const auto& change : std::exchange(held_back, {})) change();
  }
  void establish(bool established) {
    for (auto& [address, peer] : speaker.peers) peer.established = established;
    if (stream) post(travel, [this] { announcer.on_peers_changed(); });
  }

  /// Lets `span` pass.
  void pass(std::chrono::nanoseconds span) {
    const Instant end = now + span;
    turn();
    for (unsigned steps = 0;; ++steps) {
      if (steps > 200'000) throw std::runtime_error("the announcer is never at rest");
      Deadline next = announcer.next_deadline();
      if (!mail.empty()) next = earlier(next, mail.begin()->first);
      if (!stream && speaker.life == SpeakerModel::Life::running)
        next = earlier(next, std::max(now, next_connect));
      if (!next || *next > end) break;
      now = std::max(now, *next);
      if (!stream && speaker.life == SpeakerModel::Life::running && now >= next_connect) {
        stream = true;
        announcer.on_restarted(now);
      }
      while (!mail.empty() && mail.begin()->first <= now) {
        auto letter = std::move(mail.begin()->second);
        mail.erase(mail.begin());
        letter();
      }
      turn();
    }
    now = end;
  }

  [[nodiscard]] const VipRoute& route(const IpAddress& vip) const {
    return announcer.routes().at(vip);
  }
  [[nodiscard]] bool agree() const {
    for (const auto& [vip, one] : wanted) {
      if (!one.own || one.held) continue;
      const auto it = speaker.rib.find(vip);
      if ((it == speaker.rib.end() ? std::nullopt : std::optional(it->second)) != one.announcement)
        return false;
    }
    return true;
  }
  [[nodiscard]] bool logged(std::string_view part) const {
    for (const auto& line : log)
      if (line.find(part) != std::string::npos) return true;
    return false;
  }

 private:
  void post(std::chrono::nanoseconds delay, std::function<void()> letter) {
    mail.emplace(now + delay, std::move(letter));
  }
  void lost() {
    if (!std::exchange(stream, false)) return;
    next_connect = now + reconnect;
    announcer.on_lost({.message = "stream ended", .code = "unreachable"}, now);
  }
  void turn() {
    for (const auto& ask : announcer.due(now)) {
      // One is open at a time; those of before the last restarts may still be under way. Removals
      // that nobody waits for are as many as are wanted.
      const bool removes = std::holds_alternative<AskRemove>(ask.what);
      if (removes && !announcer.link().up()) ++blind_removals;
      if (++open[ask.what.index()] > 3 && !(removes && blind_removals > 0))
        throw std::runtime_error("too many questions of a kind");
      std::visit([&](const auto& what) { send(ask.number, ask.what.index(), what); }, ask.what);
    }
    for (auto& event : announcer.take_events()) log.push_back(event.subject + ": " + event.text);
  }

  /// The speaker gets the question after `travel`, and its answer comes after another; a frozen
  /// one's is the deadline.
  template <class What>
  void send(AskNumber number, std::size_t kind, const What& what) {
    post(travel, [this, number, kind, what] {
      const bool hung = speaker.life == SpeakerModel::Life::hung;
      if constexpr (std::is_same_v<decltype(put(what)), Result<void>>) {
        if (hung) held_back.push_back([this, what] { static_cast<void>(put(what)); });
      }
      auto answer = put(what);
      const auto limit = kind == 0 ? std::min(deadline, 500ms) : deadline;
      post(hung ? std::chrono::nanoseconds(limit) : travel, [this, number, kind, answer] {
        --open[kind];
        if (!lose_answers) announcer.answered(number, answer, now);
      });
    });
  }
  Result<BgpIdentity> put(const AskIdentity&) { return speaker.identify(); }
  Result<std::vector<BgpPeer>> put(const AskPeers&) { return speaker.list_peers(); }
  Result<std::vector<Announcement>> put(const AskRib& ask) {
    return speaker.list_rib(ask.family, ask.vips);
  }
  Result<std::vector<IpAddress>> put(const AskSent& ask) {
    return speaker.list_sent(ask.peer, ask.family, ask.vips);
  }
  Result<void> put(const AskAdd& ask) {
    last_own_as = ask.own_as;
    return speaker.add(ask.announcement);
  }
  Result<void> put(const AskRemove& ask) { return speaker.remove(ask.vip); }
};

/// A world at rest: both VIPs wanted, in the RIB and sent.
inline World announced() {
  World world;
  world.want(kVip4);
  world.want(kVip6);
  world.pass(5s);
  REQUIRE(world.agree());
  REQUIRE(world.announcer.alarms().empty());
  return world;
}

}  // namespace holdfast::world

// SPDX-License-Identifier: Apache-2.0
// What is asked, and what answers mean. What operators are told of it is in announcer_alarms.cc.
#include "ctrl/announce/announcer.h"

#include <fmt/format.h>

#include <algorithm>

namespace holdfast {
namespace {

constexpr Family kFamilies[]{Family::ipv4, Family::ipv6};

bool uses(const BgpPeer& peer, Family family) {
  return peer.established && (family == Family::ipv4 ? peer.ipv4 : peer.ipv6);
}

/// No answer came at all: the same as a late one.
Error silence() { return {.message = "it did not answer", .code = "deadline"}; }

}  // namespace

Announcer::Announcer(std::string speaker, Instant now)
    : speaker_(std::move(speaker)), link_(now), next_full_read_(now) {}

void Announcer::want(const WantedVips& wanted, Instant now) {
  for (const auto& [vip, one] : wanted) {
    const auto [it, is_new] = routes_.try_emplace(vip);
    auto& route = it->second;
    const bool was_wanted = route.wanted().announcement.has_value();
    const auto why_not_before = route.wanted().why_not;
    const bool other = route.want(one);
    const auto& now_wanted = route.wanted();
    const bool waits_for_other = now_wanted.held && now_wanted.why_not != why_not_before;
    if (!other && !is_new && !waits_for_other) continue;
    if (is_new && now_wanted.own && link_.up()) plan_reads_of(vip, now);
    if (now_wanted.announcement && !was_wanted) {
      event(Severity::info, subject_of(vip), "to be announced");
    } else if (!now_wanted.announcement && was_wanted) {
      event(Severity::warning, subject_of(vip), "to be withdrawn: " + now_wanted.why_not);
    } else if ((is_new || waits_for_other) && now_wanted.own && !now_wanted.announcement) {
      event(Severity::info, subject_of(vip), "not announced yet: " + now_wanted.why_not);
    }
  }
}

template <class T>
Result<T> Announcer::unnamed(Result<T> answer) const {
  if (!answer && answer.error().message.starts_with(speaker_ + " "))
    answer.error().message.erase(0, speaker_.size() + 1);
  return answer;
}

// News.

void Announcer::on_restarted(Instant now) {
  link_.on_restarted(now);
  // What is still on its way was asked of another one, perhaps.
  identity_ = peer_list_ = rib_ = sent_ = {};
  if (change_.open()) routes_[change_.vips.front()].on_abandoned();
  change_ = {};
  peers_.clear();
}

void Announcer::on_lost(const Error& error, Instant now) {
  on_link(link_.on_lost(unnamed(Result<void>(tl::unexpected(error))).error(), now), now);
}

void Announcer::on_link(SpeakerLink::Effect effect, Instant now) {
  // One that hangs keeps its sessions for a while; one that is gone has none.
  if (link_.state() == SpeakerState::unreachable) peers_.clear();
  log_link();
  if (link_.up()) blind_rounds_ = 0;
  for (auto& [vip, route] : routes_) {
    const bool of_earlier_run = route.presence() == Presence::unknown;
    if (link_.state() == SpeakerState::not_started || (link_.gone() && of_earlier_run))
      route.on_no_rib();
  }
  if (effect == SpeakerLink::Effect::none) return;
  plan_.clear();
  peer_list_ = rib_ = sent_ = change_ = {};
  unreadable_.clear();
  for (auto& [vip, route] : routes_) route.forget();
  next_full_read_ = now;
}

bool Announcer::blind(Family family) const {
  const auto it = unreadable_.find(family);
  return it != unreadable_.end() && it->second >= 2;
}

// Questions.

Ask Announcer::begin(Flight& flight, Instant now) {
  flight.number = next_number_++;
  flight.asked = now;
  return {.number = flight.number};
}

std::optional<Announcer::Flight> Announcer::land(Flight& flight, AskNumber number) {
  if (!flight.open() || flight.number != number) return std::nullopt;
  return std::exchange(flight, {});
}

void Announcer::give_up_on_silence(Instant now) {
  const auto silent = [now](const Flight& flight) {
    return flight.open() && now - flight.asked >= kPatience;
  };
  const auto failed = tl::unexpected<Error>(silence());
  if (silent(identity_)) answered(identity_.number, Result<BgpIdentity>(failed), now);
  if (silent(peer_list_)) answered(peer_list_.number, Result<std::vector<BgpPeer>>(failed), now);
  if (silent(rib_)) answered(rib_.number, Result<std::vector<Announcement>>(failed), now);
  if (silent(sent_)) answered(sent_.number, Result<std::vector<IpAddress>>(failed), now);
  if (silent(change_)) answered(change_.number, Result<void>(failed), now);
}

void Announcer::plan_reads_of(const IpAddress& vip, Instant now) {
  plan_.add({.family = vip.family()}, vip, now);
  for (const auto& peer : peers_in_use(vip.family()))
    plan_.add({.peer = peer, .family = vip.family()}, vip, now);
}

void Announcer::plan_full_read(Instant now) {
  next_full_read_ = now + kFullRead;
  peers_at_ = now;
  for (auto& [vip, route] : routes_) {
    if (!route.wanted().own) continue;
    plan_reads_of(vip, now);
    if (blind(vip.family())) route.distrust();  // level-triggered all the same
  }
}

std::optional<Ask> Announcer::next_read(bool of_peers, Flight& flight, Instant now) {
  if (flight.open()) return std::nullopt;
  auto due = plan_.take_due(of_peers, now);
  if (!due) return std::nullopt;
  auto ask = begin(flight, now);
  flight.target = due->target;
  flight.vips = due->vips;
  if (of_peers) {
    ask.what = AskSent{*due->target.peer, due->target.family, std::move(due->vips)};
  } else {
    ask.what = AskRib{due->target.family, std::move(due->vips)};
  }
  return ask;
}

std::optional<Ask> Announcer::next_change(Instant now) {
  if (change_.open() || routes_.empty()) return std::nullopt;
  // In turns, so that one that fails over and over keeps no other waiting.
  auto it = routes_.upper_bound(last_changed_);
  for (std::size_t i = 0; i < routes_.size(); ++i, ++it) {
    if (it == routes_.end()) it = routes_.begin();
    auto& [vip, route] = *it;
    if (!route.needs_change(blind(vip.family())) || route.next_try() > now) continue;
    last_changed_ = vip;
    auto ask = begin(change_, now);
    change_.vips = {vip};
    if (const auto& announcement = route.wanted().announcement) {
      ask.what = AskAdd{*announcement, link_.identity().as};
    } else {
      ask.what = AskRemove{vip};
    }
    route.on_asked();
    return ask;
  }
  return std::nullopt;
}

bool Announcer::removes_blindly() const {
  const bool may_hear =
      link_.state() == SpeakerState::hung || link_.state() == SpeakerState::unreachable;
  return leaving_ && may_hear && !link_.gone() && blind_rounds_ < kBlindRounds;
}

void Announcer::remove_blindly(std::vector<Ask>& asks, Instant now) {
  if (!removes_blindly() || now < next_blind_) return;
  next_blind_ = now + kBlindPause;
  ++blind_rounds_;
  for (auto& [vip, route] : routes_) {
    const auto& wanted = route.wanted();
    if (!wanted.own || wanted.announcement || route.presence() == Presence::absent) continue;
    // All at once: there is no time to wait for one before the next.
    asks.push_back({.number = next_number_++, .what = AskRemove{vip}});
    route.on_removed_blindly();
  }
}

std::vector<Ask> Announcer::due(Instant now) {
  give_up_on_silence(now);
  std::vector<Ask> asks;
  const auto add = [&](std::optional<Ask> ask) {
    if (ask) asks.push_back(*std::move(ask));
  };
  if (!identity_.open() && now >= link_.next()) {
    link_.on_asked(now);
    auto ask = begin(identity_, now);
    ask.what = AskIdentity{};
    add(std::move(ask));
  }
  if (link_.up()) {
    if (now >= next_full_read_) plan_full_read(now);
    if (peers_at_ && *peers_at_ <= now && !peer_list_.open()) {
      peers_at_.reset();
      auto ask = begin(peer_list_, now);
      ask.what = AskPeers{};
      add(std::move(ask));
    }
    add(next_read(false, rib_, now));
    add(next_read(true, sent_, now));
    add(next_change(now));
  }
  remove_blindly(asks, now);
  update_alarms(now);
  return asks;
}

Deadline Announcer::next_deadline() const {
  Deadline next;
  for (const Flight* flight : {&identity_, &peer_list_, &rib_, &sent_, &change_}) {
    if (flight->open()) next = earlier(next, flight->asked + kPatience);
  }
  if (!identity_.open()) next = earlier(next, link_.next());
  for (const Trouble* trouble : {&away_, &lonely_}) {
    if (trouble->since && !trouble->told) next = earlier(next, *trouble->since + kSpeakerAlarm);
  }
  if (removes_blindly()) next = earlier(next, next_blind_);
  if (!link_.up()) return next;
  next = earlier(next, next_full_read_);
  if (!peer_list_.open()) next = earlier(next, peers_at_);
  if (!rib_.open()) next = earlier(next, plan_.next(false));
  if (!sent_.open()) next = earlier(next, plan_.next(true));
  for (const auto& [vip, route] : routes_) {
    if (!change_.open() && route.needs_change(blind(vip.family())))
      next = earlier(next, route.next_try());
    next = earlier(next, route.alarm_due());
  }
  return next;
}

// Answers.

void Announcer::answered(AskNumber number, const Result<BgpIdentity>& answer, Instant now) {
  if (!land(identity_, number)) return;
  on_link(link_.on_identity(unnamed(answer), now), now);
}

void Announcer::drop_family(const IpAddress& peer, Family family) {
  plan_.forget({.peer = peer, .family = family});
  for (auto& [vip, route] : routes_) {
    if (vip.family() == family) route.forget_peer(peer);
  }
}

void Announcer::answered(AskNumber number, const Result<std::vector<BgpPeer>>& answer,
                         Instant now) {
  if (!land(peer_list_, number)) return;
  if (!answer) {
    link_.on_failure(answer.error(), now);
    peers_at_ = earlier(peers_at_, now + kReadAgain);
    return;
  }
  const auto before = std::exchange(peers_, {});
  for (const auto& peer : *answer) {
    const auto old = before.find(peer.address);
    const bool known = old != before.end();
    const bool same = known && old->second.peer.established == peer.established;
    peers_[peer.address] = {peer, same ? old->second.since : now};
    if (!same && (known || peer.established)) {
      event(peer.established ? Severity::info : Severity::warning,
            fmt::format("peer {} (AS {})", peer.address.text(), peer.as),
            peer.established ? "session established" : "session lost");
    }
    for (const auto family : kFamilies) {
      const bool used = known && uses(old->second.peer, family);
      if (used && !uses(peer, family)) drop_family(peer.address, family);
      if (used || !uses(peer, family)) continue;
      for (const auto& [vip, route] : routes_) {
        if (vip.family() != family || !route.wanted().own) continue;
        const ReadTarget target{.peer = peer.address, .family = family};
        plan_.add(target, vip, now);
        plan_.add_after_change(target, vip, now);
      }
    }
  }
  for (const auto& [address, old] : before) {
    if (peers_.contains(address)) continue;
    for (const auto family : kFamilies) drop_family(address, family);
  }
}

void Announcer::read_failed(const Flight& flight, const Error& error, Instant now) {
  link_.on_failure(error, now);
  if (flight.target.peer && !peers_in_use(flight.target.family).contains(*flight.target.peer))
    return;
  for (const auto& vip : flight.vips) plan_.add(flight.target, vip, now + kReadAgain);
}

void Announcer::answered(AskNumber number, const Result<std::vector<Announcement>>& answer,
                         Instant now) {
  const auto flight = land(rib_, number);
  if (!flight) return;
  if (!answer) {
    read_failed(*flight, answer.error(), now);
    if (++unreadable_[flight->target.family] == 2)
      event(Severity::warning, speaker_, "its RIB can not be read: " + answer.error().message);
    if (!blind(flight->target.family)) return;
    for (const auto& vip : flight->vips) routes_[vip].on_unreadable();
    return;
  }
  unreadable_[flight->target.family] = 0;
  for (const auto& vip : flight->vips) {
    const auto found =
        std::find_if(answer->begin(), answer->end(),
                     [&](const Announcement& announcement) { return announcement.vip == vip; });
    routes_[vip].on_rib(found == answer->end() ? std::nullopt : std::optional(*found), number, now);
  }
}

void Announcer::answered(AskNumber number, const Result<std::vector<IpAddress>>& answer,
                         Instant now) {
  const auto flight = land(sent_, number);
  if (!flight) return;
  if (!answer) {
    peers_at_ = earlier(peers_at_, now);  // perhaps the peer has gone
    read_failed(*flight, answer.error(), now);
    return;
  }
  const std::set<IpAddress> sent(answer->begin(), answer->end());
  const auto& peer = *flight->target.peer;
  if (!peers_in_use(flight->target.family).contains(peer)) return;
  for (const auto& vip : flight->vips) routes_[vip].on_sent(peer, sent.contains(vip), number);
}

void Announcer::answered(AskNumber number, const Result<void>& answer, Instant now) {
  const auto flight = land(change_, number);
  if (!flight) return;
  const auto& vip = flight->vips.front();
  auto& route = routes_[vip];
  const auto trouble_before = route.trouble();
  route.on_changed(unnamed(answer), next_number_, now);
  if (!answer) {
    link_.on_failure(answer.error(), now);
    if (route.trouble() != trouble_before)
      event(Severity::warning, subject_of(vip),
            fmt::format("{} refuses the change: {}", speaker_, route.trouble()));
  }
  plan_.add_after_change({.family = vip.family()}, vip, now);
  for (const auto& peer : peers_in_use(vip.family()))
    plan_.add_after_change({.peer = peer, .family = vip.family()}, vip, now);
}

std::set<IpAddress> Announcer::peers_in_use(Family family) const {
  std::set<IpAddress> result;
  for (const auto& [address, view] : peers_) {
    if (uses(view.peer, family)) result.insert(address);
  }
  return result;
}

}  // namespace holdfast

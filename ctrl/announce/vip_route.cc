// SPDX-License-Identifier: Apache-2.0
#include "ctrl/announce/vip_route.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace holdfast {

bool VipRoute::want(WantedVip wanted) {
  const bool other = wanted.announcement != wanted_.announcement;
  wanted_ = std::move(wanted);
  was_wanted_ = was_wanted_ || wanted_.announcement.has_value();
  if (was_wanted_) wanted_.held = false;  // what is there is of this run
  if (!other) return false;
  failures_ = 0;
  next_try_ = {};
  trouble_.clear();
  return true;
}

bool VipRoute::needs_change(bool blind) const {
  if (!wanted_.own || wanted_.held || changing_) return false;
  return belief_known_ ? belief_ != wanted_.announcement : blind;
}

void VipRoute::on_asked() {
  changing_ = true;
  attempted_ = wanted_.announcement;
  // A removal of what was not read may find it there.
  if (attempted_ || presence_ == Presence::unknown) presence_ = Presence::maybe;
}

void VipRoute::on_failure(std::string why, Instant now) {
  constexpr unsigned kDoublings = 5;  // beyond kLongestRetry
  const auto wait = std::min<std::chrono::milliseconds>(
      kFirstRetry * (1U << std::min(failures_, kDoublings)), kLongestRetry);
  ++failures_;
  next_try_ = now + wait;
  trouble_ = std::move(why);
}

void VipRoute::on_changed(const Result<void>& answer, AskNumber settled, Instant now) {
  changing_ = false;
  settled_ = settled;
  if (!answer) {
    on_failure(answer.error().message, now);
    return;
  }
  belief_ = attempted_;
  belief_known_ = true;
  unconfirmed_ = true;
}

void VipRoute::on_rib(const std::optional<Announcement>& found, AskNumber number, Instant now) {
  if (changing_ || number < settled_) return;
  if (!read_known_ || read_ != found) rib_since_ = now;
  read_ = belief_ = found;
  read_known_ = belief_known_ = true;
  presence_ = found ? Presence::maybe : Presence::absent;
  if (found == wanted_.announcement) {
    failures_ = 0;
    trouble_.clear();
  } else if (std::exchange(unconfirmed_, false) && attempted_ == wanted_.announcement) {
    // The change was accepted and has not worked: not at once again.
    on_failure(attempted_ ? "gobgpd took the route, but has it not in its RIB as asked (does an "
                            "import policy reject or change it?)"
                          : "gobgpd removed the route, but it is still in its RIB",
               now);
  }
  unconfirmed_ = false;
}

void VipRoute::on_sent(const IpAddress& peer, bool sent, AskNumber number) {
  if (changing_ || number < settled_) return;
  sent_[peer] = sent;
}

void VipRoute::forget() {
  belief_.reset();
  read_.reset();
  belief_known_ = read_known_ = false;
  changing_ = unconfirmed_ = false;
  failures_ = 0;
  next_try_ = {};
  trouble_.clear();
  sent_.clear();
}

RibState VipRoute::rib() const {
  if (!read_known_) return RibState::unknown;
  if (!read_) return RibState::absent;
  return read_ == wanted_.announcement ? RibState::same : RibState::other;
}

bool VipRoute::sent_to(const IpAddress& peer) const {
  const auto it = sent_.find(peer);
  return it != sent_.end() && it->second;
}

std::string VipRoute::difference(const std::set<IpAddress>& peers) const {
  if (!wanted_.own || wanted_.held) return {};
  const auto& announcement = wanted_.announcement;
  const auto because = trouble_.empty() ? std::string() : ": " + trouble_;
  switch (rib()) {
    case RibState::unknown:
      if (announcement) return "is wanted, but gobgpd's RIB can not be read" + because;
      break;
    case RibState::absent:
      if (announcement) return "is wanted, but not in gobgpd's RIB" + because;
      break;
    case RibState::other:
      if (!announcement) return "is in gobgpd's RIB, but not wanted" + because;
      return "is in gobgpd's RIB with other attributes than wanted" + because;
    case RibState::same:
      break;
  }
  const auto& communities = announcement ? announcement->communities : std::vector<std::uint32_t>{};
  if (std::binary_search(communities.begin(), communities.end(), kNoAdvertise)) return {};
  for (const auto& peer : peers) {
    if (sent_to(peer) == announcement.has_value()) continue;
    return fmt::format(
        "is {} peer {}",
        announcement ? "wanted, but was not sent to" : "not wanted, but is still announced to",
        peer.text());
  }
  return {};
}

bool VipRoute::update_alarm(const std::set<IpAddress>& peers, bool judge, Instant now) {
  const auto difference_now = judge ? difference(peers) : std::string();
  if (difference_now.empty()) {
    differs_since_.reset();
    return !std::exchange(alarm_, {}).empty();
  }
  if (!differs_since_) differs_since_ = now;
  if (now - *differs_since_ < kAlarmAfter) return false;
  const bool is_new = alarm_.empty();
  alarm_ = difference_now;
  return is_new;
}

Deadline VipRoute::alarm_due() const {
  if (!differs_since_ || !alarm_.empty()) return std::nullopt;
  return *differs_since_ + kAlarmAfter;
}

}  // namespace holdfast

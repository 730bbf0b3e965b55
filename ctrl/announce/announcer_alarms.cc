// SPDX-License-Identifier: Apache-2.0
// What operators are told of announcing: alarms, and lines for the log.
#include <fmt/format.h>

#include <algorithm>

#include "ctrl/announce/announcer.h"

namespace holdfast {
namespace {

std::string_view text_of(RibState state, bool wanted, bool held) {
  switch (state) {
    case RibState::unknown:
      return "unknown";
    case RibState::absent:
      return wanted ? "not in gobgpd's RIB" : "withdrawn: no longer in gobgpd's RIB";
    case RibState::other:
      if (held) return "in gobgpd's RIB from an earlier run: it stays while this one gets ready";
      return wanted ? "in gobgpd's RIB with other attributes than wanted"
                    : "in gobgpd's RIB, but not wanted";
    case RibState::same:
      return "announced: in gobgpd's RIB";
  }
  return "?";
}

std::string_view advice_for(SpeakerState state) {
  switch (state) {
    case SpeakerState::connecting:
    case SpeakerState::up:
      return "";
    case SpeakerState::unreachable:
      return "; start it, or mend `gobgp` in [bgp]";
    case SpeakerState::hung:
      return "; restart it if that lasts";
    case SpeakerState::not_started:
      return "; give it its configuration (gobgpd -f FILE)";
  }
  return "";
}

}  // namespace

std::string Announcer::subject_of(const IpAddress& vip) { return "VIP " + vip.text(); }

bool Announcer::wants_anything() const {
  return std::any_of(routes_.begin(), routes_.end(), [](const auto& entry) {
    return entry.second.wanted().announcement.has_value();
  });
}

bool Announcer::has_peer() const {
  return std::any_of(peers_.begin(), peers_.end(),
                     [](const auto& entry) { return entry.second.peer.established; });
}

Presence Announcer::anything_announced() const {
  auto result = Presence::absent;
  for (const auto& [vip, route] : routes_) {
    if (!route.wanted().own || route.presence() == Presence::absent) continue;
    if (route.presence() == Presence::maybe) return Presence::maybe;
    result = Presence::unknown;
  }
  return result;
}

std::string Announcer::state_text() const {
  return fmt::format("{} is {}{}{}{}", speaker_, name_of(link_.state()),
                     link_.why().empty() ? "" : ": ", link_.why(), advice_for(link_.state()));
}

std::string Announcer::away_text() const { return "VIPs are not announced: " + state_text(); }

std::string Announcer::lonely_text() const {
  return fmt::format("VIPs are announced to nobody: {} has no established session", speaker_);
}

void Announcer::log_link() {
  if (link_.state() == logged_) return;
  logged_ = link_.state();
  if (link_.state() == SpeakerState::up) {
    event(Severity::info, speaker_,
          fmt::format("up, AS {}, router ID {}", link_.identity().as, link_.identity().router_id));
    return;
  }
  event(Severity::warning, speaker_,
        fmt::format("{}: {}{} (forwarding goes on)", name_of(link_.state()), link_.why(),
                    advice_for(link_.state())));
}

void Announcer::update_trouble(Trouble& trouble, bool wrong, Instant now) {
  if (!wrong) {
    trouble = {};
  } else if (!trouble.since) {
    trouble.since = now;
  } else if (now - *trouble.since >= kSpeakerAlarm) {
    trouble.told = true;
  }
}

void Announcer::update_alarms(Instant now) {
  const bool up = link_.up();
  const bool wants = wants_anything();
  const bool away_before = away_.told;
  const bool lonely_before = lonely_.told;
  update_trouble(away_, wants && link_.state() != SpeakerState::up, now);
  update_trouble(lonely_, wants && up && !has_peer(), now);
  const auto tell = [&](const Trouble& trouble, bool before, const std::string& text) {
    if (trouble.told == before) return;
    event(trouble.told ? Severity::error : Severity::info, speaker_,
          (trouble.told ? "alarm: " : "alarm over: ") + text);
  };
  const std::string settled = wants ? "it is up" : "nothing is to be announced";
  tell(away_, away_before, away_.told ? away_text() : settled);
  const std::string met = !wants ? settled : up ? "a session is established" : "it is away itself";
  tell(lonely_, lonely_before, lonely_.told ? lonely_text() : met);

  const std::set<IpAddress> peers[]{peers_in_use(Family::ipv4), peers_in_use(Family::ipv6)};
  for (auto& [vip, route] : routes_) {
    if (route.update_alarm(peers[vip.is_v4() ? 0 : 1], up, now)) {
      const bool over = route.alarm().empty();
      event(over ? Severity::info : Severity::error, subject_of(vip),
            over ? "alarm over" : "alarm: " + route.alarm());
    }
    log_rib(vip, route);
  }
}

void Announcer::log_rib(const IpAddress& vip, const VipRoute& route) {
  auto& [state, since] = logged_rib_[vip];
  if (route.rib() == state) since = route.rib_since();
  if (route.rib() == state || route.rib() == RibState::unknown || !route.wanted().own) return;
  const bool wanted = route.wanted().announcement.has_value();
  const bool held = route.wanted().held;
  const bool as_wanted = route.rib() == (wanted ? RibState::same : RibState::absent);
  // A new wish alone is no news of the RIB, and at the start nothing is there.
  const bool first_and_empty = state == RibState::unknown && route.rib() == RibState::absent;
  const bool news = !first_and_empty && (as_wanted || since != route.rib_since());
  state = route.rib();
  since = route.rib_since();
  if (news)
    event(as_wanted || held ? Severity::info : Severity::warning, subject_of(vip),
          std::string(text_of(state, wanted, held)));
}

std::string Announcer::warning() const {
  const bool known = link_.state() != SpeakerState::up && link_.state() != SpeakerState::connecting;
  return known && !away_.told ? state_text() : std::string();
}

std::vector<std::string> Announcer::alarms() const {
  std::vector<std::string> alarms;
  if (away_.told) alarms.push_back(away_text());
  if (lonely_.told) alarms.push_back(lonely_text());
  for (const auto& [vip, route] : routes_) {
    if (!route.alarm().empty())
      alarms.push_back(fmt::format("VIP {} {}", vip.text(), route.alarm()));
  }
  return alarms;
}

}  // namespace holdfast

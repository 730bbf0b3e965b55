// SPDX-License-Identifier: Apache-2.0
#include "ctrl/announce/announce_shell.h"

#include <utility>
#include <variant>

#include "ctrl/loop/boot_clock.h"

namespace holdfast {
namespace {

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

}  // namespace

AnnounceShell::AnnounceShell(Loop& loop, std::unique_ptr<BgpSpeaker> speaker, std::string name,
                             Events& events, std::function<void()> moved)
    : loop_(loop),
      events_(events),
      announcer_(std::move(name), boot_now()),
      moved_(std::move(moved)),
      speaker_(std::move(speaker)) {
  speaker_->watch({.restarted =
                       [this] {
                         announcer_.on_restarted(boot_now());
                         turn();
                       },
                   .changed =
                       [this] {
                         announcer_.on_peers_changed();
                         turn();
                       },
                   .lost =
                       [this](const Error& error) {
                         announcer_.on_lost(error, boot_now());
                         turn();
                       }});
  turn();
}

AnnounceShell::~AnnounceShell() { loop_.cancel(timer_); }

void AnnounceShell::want(const WantedVips& wanted) {
  announcer_.want(wanted, boot_now());
  turn();
}

void AnnounceShell::turn() {
  for (const auto& ask : announcer_.due(boot_now())) perform(ask);
  for (auto& event : announcer_.take_events())
    events_.add(event.kind, std::move(event.subject), std::move(event.text), event.severity);
  loop_.cancel(std::exchange(timer_, 0));
  if (const auto next = announcer_.next_deadline()) {
    timer_ = loop_.call_at(*next, "announcing", [this] {
      timer_ = 0;
      turn();
    });
  }
  moved_();
}

template <class T>
BgpSpeaker::Answer<T> AnnounceShell::answer_to(AskNumber number) {
  return [this, number](const Result<T>& answer) {
    announcer_.answered(number, answer, boot_now());
    turn();
  };
}

void AnnounceShell::perform(const Ask& ask) {
  const auto number = ask.number;
  std::visit(
      Overloaded{
          [&](const AskIdentity&) { speaker_->identify(answer_to<BgpIdentity>(number)); },
          [&](const AskPeers&) { speaker_->list_peers(answer_to<std::vector<BgpPeer>>(number)); },
          [&](const AskRib& what) {
            speaker_->list_rib(what.family, what.vips,
                               answer_to<std::vector<Announcement>>(number));
          },
          [&](const AskSent& what) {
            speaker_->list_sent(what.peer, what.family, what.vips,
                                answer_to<std::vector<IpAddress>>(number));
          },
          [&](const AskAdd& what) {
            speaker_->add(what.announcement, what.own_as, answer_to<void>(number));
          },
          [&](const AskRemove& what) { speaker_->remove(what.vip, answer_to<void>(number)); },
      },
      ask.what);
}

}  // namespace holdfast

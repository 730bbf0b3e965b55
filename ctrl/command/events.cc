// SPDX-License-Identifier: Apache-2.0
#include "ctrl/command/events.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "ctrl/control_plane.h"
#include "lib/protocol/json.h"

namespace holdfast {
namespace {

constexpr std::chrono::milliseconds kLook{100};
/// Sent at one look: a good client that has the whole ring before it must not be taken for one that
/// does not read.
constexpr unsigned kMostAtOnce = 250;

/// RFC 3339 in UTC, with milliseconds.
std::string time_text(std::chrono::system_clock::time_point time) {
  const auto second = std::chrono::floor<std::chrono::seconds>(time);
  const auto rest = std::chrono::duration_cast<std::chrono::milliseconds>(time - second);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(second)), rest.count());
}

Json json_of(const Event& event) {
  return {{"number", event.number},
          {"time", time_text(event.wall_time)},
          {"boot_seconds", std::chrono::duration<double>(event.at).count()},
          {"severity", name_of(event.severity)},
          {"kind", name_of(event.kind)},
          {"subject", event.subject},
          {"text", event.text}};
}

/// Sends what is new at each look. A client that does not read is dropped by its connection, and
/// the look after that ends this.
class EventFollow : public std::enable_shared_from_this<EventFollow> {
 public:
  EventFollow(ControlPlane& control, std::shared_ptr<Reply> reply)
      : control_(control), reply_(std::move(reply)) {}

  void start() {
    reply_->event(Json::object());  // there may be nothing else for long
    // The timer holds this object until it ends.
    timer_ = control_.loop().call_every(kLook, "following events",
                                        [self = shared_from_this()] { self->look(); });
    look();
  }

 private:
  void look() {
    const auto& kept = control_.events().kept();
    if (!kept.empty() && told_ != 0 && kept.front().number > told_ + 1) {
      reply_->event({{"missed", kept.front().number - told_ - 1}});
    }
    unsigned sent = 0;
    for (const auto& event : kept) {
      if (reply_->gone() || sent == kMostAtOnce) break;
      if (event.number <= told_) continue;
      told_ = event.number;
      reply_->event(json_of(event));
      ++sent;
    }
    if (!reply_->gone()) return;
    control_.loop().cancel(std::exchange(timer_, 0));
    reply_.reset();
  }

  ControlPlane& control_;
  std::shared_ptr<Reply> reply_;
  std::uint64_t told_ = 0;  // up to this number
  Loop::TimerId timer_ = 0;
};

void run(ControlPlane& control, const Json& arguments, const std::shared_ptr<Reply>& reply) {
  if (flag_at(arguments, "follow")) {
    return std::make_shared<EventFollow>(control, reply)->start();
  }
  Json events = Json::array();
  for (const auto& event : control.events().kept()) events.push_back(json_of(event));
  reply->result({{"newest", control.events().newest()}, {"events", std::move(events)}});
}

std::string render_event(const Json& event) {
  if (event.contains("missed")) {
    return fmt::format("({} events are not kept any more)\n", number_at(event, "missed"));
  }
  return fmt::format("{} {:<7} {} {}: {}\n", text_at(event, "time"), text_at(event, "severity"),
                     text_at(event, "kind"), text_at(event, "subject"), text_at(event, "text"));
}

std::string render(const Json& result) {
  const auto& events = list_at(result, "events");
  std::string text;
  if (const auto older = number_at(result, "newest") - events.size(); older > 0) {
    text = render_event({{"missed", older}});
  }
  for (const auto& event : events) text += render_event(event);
  return text;
}

}  // namespace

Command events_command() {
  return {.name = "events",
          .summary = "Show what happened lately, and with --follow what happens from now on",
          .example = "holdfast events --follow",
          .arguments = {{.kind = Argument::Kind::flag,
                         .name = "follow",
                         .value = {},
                         .help = "Go on with each event as it happens, until Ctrl-C"}},
          .run = run,
          .render = render,
          .render_event = render_event};
}

}  // namespace holdfast

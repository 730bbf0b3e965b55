// SPDX-License-Identifier: Apache-2.0
#include "ctrl/events.h"

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <sstream>

#include "lib/base/printable.h"
#include "tests/catch.h"

namespace holdfast {
namespace {

/// What goes to the default logger meanwhile.
class LogCapture {
 public:
  LogCapture() : before_(spdlog::default_logger()) {
    auto logger = std::make_shared<spdlog::logger>(
        "captured", std::make_shared<spdlog::sinks::ostream_sink_st>(stream_));
    logger->set_pattern("%l %v");
    spdlog::set_default_logger(std::move(logger));
  }
  ~LogCapture() { spdlog::set_default_logger(before_); }
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;
  [[nodiscard]] std::string text() const { return stream_.str(); }

 private:
  std::shared_ptr<spdlog::logger> before_;
  std::ostringstream stream_;
};

TEST_CASE("an event is logged and kept in one call, with both clocks") {
  LogCapture log;
  Events events;
  const auto before = std::chrono::system_clock::now();
  events.add(EventKind::backend, "web/b1", "eligible -> down: refused", Severity::warning);
  events.add(EventKind::drain, "web/b2", "started");
  CHECK(log.text() ==
        "warning backend web/b1: eligible -> down: refused\n"
        "info drain web/b2: started\n");
  REQUIRE(events.kept().size() == 2);
  const Event& first = events.kept()[0];
  CHECK(first.number == 1);
  CHECK(first.subject == "web/b1");
  CHECK(first.text == "eligible -> down: refused");
  CHECK(first.severity == Severity::warning);
  CHECK(first.wall_time >= before);
  CHECK(first.at <= events.kept()[1].at);
  CHECK(events.newest() == 2);
}

TEST_CASE("of many events the newest are kept, and their numbers say how many there were") {
  LogCapture log;
  Events events;
  for (std::size_t i = 1; i <= Events::kKept + 5; ++i)
    events.add(EventKind::backend, "b", std::to_string(i));
  REQUIRE(events.kept().size() == Events::kKept);
  CHECK(events.newest() == Events::kKept + 5);
  for (std::size_t i = 0; i < Events::kKept; ++i) {
    CHECK(events.kept()[i].number == i + 6);
    CHECK(events.kept()[i].text == std::to_string(i + 6));
  }
}

TEST_CASE("words of any length and kind take a bounded place in ring and log") {
  LogCapture log;
  Events events;
  std::string longest;
  while (longest.size() < 100'000) longest += "\u00e9";  // two bytes
  events.add(EventKind::command, longest, "x" + longest);
  for (const auto& words : {events.kept().back().subject, events.kept().back().text}) {
    CHECK(words.size() <= kMaxSentence + 4);
    CHECK(words.substr(words.size() - 5) == "\u00e9...");
  }
  events.add(EventKind::command, "\x1b[2J", std::string(100'000, '\n'));
  CHECK(events.kept().back().subject == "\\x1b[2J");
  CHECK(events.kept().back().text.size() <= kMaxSentence + 3);
  CHECK(events.kept().back().text.substr(0, 8) == "\\x0a\\x0a");
  CHECK(log.text().size() < 5 * kMaxSentence);
  CHECK(log.text().find('\x1b') == std::string::npos);
}

}  // namespace
}  // namespace holdfast

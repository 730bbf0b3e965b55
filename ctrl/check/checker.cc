// SPDX-License-Identifier: Apache-2.0
#include "ctrl/check/checker.h"
#include "ctrl/log.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace holdfast {

CheckTargets check_targets(const Config& config) {
  CheckTargets targets;
  for (const auto& pool : config.pools) {
    const CheckConfig* check = config.check(pool.check);
    if (check == nullptr) continue;
    // Without a port of its own the check asks where the pool's first service is.
    std::optional<std::uint16_t> port = check->port;
    for (const auto& service : config.services) {
      if (!port && service.pool == pool.name) port = service.ports.first;
    }
    if (!port) continue;  // no service uses the pool: nobody to check it for
    for (const auto& backend : pool.backends) {
      targets[{backend.address, *port, check->name}].push_back({pool.name, backend.address});
    }
  }
  return targets;
}

Checker::Checker(Loop& loop, const Config& config, OnOutcome on_outcome)
    : loop_(loop), on_outcome_(std::move(on_outcome)), random_(std::random_device{}()) {
  for (auto& [target, memberships] : check_targets(config)) {
    auto& entry = *entries_.emplace_back(
        std::make_unique<Entry>(Entry{target, config.check(target.check), std::move(memberships)}));
    const std::chrono::nanoseconds spread =
        std::min(entry.settings->interval, std::chrono::milliseconds(kFirstWithin));
    std::uniform_int_distribution<std::int64_t> delay(0, spread.count());
    start_after(entry, std::chrono::nanoseconds(delay(random_)));
  }
}

Checker::~Checker() {
  for (const auto& entry : entries_) loop_.cancel(entry->timer);
}

std::chrono::nanoseconds Checker::jittered(std::chrono::milliseconds interval) {
  std::uniform_real_distribution<double> factor(0.9, 1.1);
  return std::chrono::duration_cast<std::chrono::nanoseconds>(interval * factor(random_));
}

void Checker::start_after(Entry& entry, std::chrono::nanoseconds delay) {
  entry.timer = loop_.call_after(delay, "a check's start", [this, &entry] {
    entry.timer = 0;
    start(entry);
  });
}

void Checker::start(Entry& entry) {
  const auto started = boot_now();
  entry.running = check_type(entry.settings->kind)
                      .start(loop_, entry.target, *entry.settings,
                             [this, &entry, started](const CheckOutcome& outcome) {
                               // The interval counts from start to start; a check that took longer
                               // is followed by the next at once.
                               const auto next = started + jittered(entry.settings->interval);
                               start_after(entry, std::max(Instant{}, next - boot_now()));
                               done(entry, outcome);
                             });
}

void Checker::done(Entry& entry, const CheckOutcome& outcome) {
  entry.running.reset();
  if (outcome.kind == CheckOutcome::Kind::not_run) {
    if (std::exchange(entry.told_not_run, true)) return;
    log_line(LogLevel::warning,
             fmt::format("check {} of {} port {} could not run: {}", entry.target.check,
                         entry.target.address.text(), entry.target.port, outcome.why));
    return;
  }
  entry.told_not_run = false;
  for (const auto& key : entry.memberships) on_outcome_(key, outcome);
}

}  // namespace holdfast

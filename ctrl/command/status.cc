// SPDX-License-Identifier: Apache-2.0
#include "ctrl/command/status.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "ctrl/command/bgp.h"
#include "ctrl/command/common.h"
#include "ctrl/command/table.h"
#include "ctrl/control_plane.h"
#include "ctrl/state_changes.h"

namespace holdfast {
namespace {

Json pool_summary(const PoolReport& pool) {
  std::uint64_t eligible = 0;
  std::uint64_t draining = 0;
  std::uint64_t other = 0;
  for (const auto& backend : pool.backends) {
    if (backend.state == BackendState::eligible) {
      ++eligible;
    } else if (backend.state == BackendState::draining) {
      ++draining;
    } else {
      ++other;
    }
  }
  return {{"name", pool.name},    {"backends", pool.backends.size()},
          {"eligible", eligible}, {"draining", draining},
          {"other", other},       {"new_flows_to", name_of(pool.placement)}};
}

/// Backends about whose way a router has spoken; one in several pools counts once for each.
std::uint64_t path_mtus_learned(const std::vector<PoolReport>& pools) {
  std::uint64_t count = 0;
  for (const auto& pool : pools)
    for (const auto& backend : pool.backends)
      if (backend.path_mtu) ++count;
  return count;
}

Json warnings_of(const ControlPlane& control) {
  Json warnings = Json::array();
  if (const auto* announcer = control.announcer())
    if (auto warning = announcer->warning(); !warning.empty())
      warnings.push_back(std::move(warning));
  for (auto& warning : standing_warnings(control.published().pools))
    warnings.push_back(std::move(warning));
  return warnings;
}

/// A site with hundreds of backends behind a lost route shall not scroll the rest away.
std::string warning_lines(const Json& result) {
  constexpr std::size_t kShown = 10;
  const auto& warnings = list_at(result, "warnings");
  std::string text;
  std::size_t shown = 0;
  for (const auto& warning : warnings)
    if (warning.is_string() && shown++ < kShown)
      text += "WARNING: " + warning.get<std::string>() + "\n";
  if (shown > kShown)
    text += fmt::format("{} warnings more: `holdfast pool show POOL` has the reasons\n",
                        shown - kShown);
  return text;
}

void run(ControlPlane& control, const Json& /*arguments*/, const std::shared_ptr<Reply>& reply) {
  const auto& published = control.published();
  const auto& config = control.config();
  Json pools = Json::array();
  for (const auto& pool : published.pools) pools.push_back(pool_summary(pool));
  reply->result({{"site", config.site.name},
                 {"version", HOLDFAST_VERSION},
                 {"pid", getpid()},
                 {"uptime_seconds", seconds_since(control.started())},
                 {"workers", control.pulse().workers()},
                 {"workers_alive", control.pulse().alive()},
                 {"ports", control.state().ports.size()},
                 {"vips", config.vips.size()},
                 {"services", config.services.size()},
                 {"snapshot_generation", published.generation},
                 {"snapshot_age_seconds", seconds_since(published.at)},
                 {"seed_fingerprint", seed_fingerprint(control.seed())},
                 {"slow_callbacks", control.loop().slow_callbacks()},
                 {"not_ready", control.data_plane_trouble()},
                 {"stopping", control.stopping()},
                 {"path_mtus_learned", path_mtus_learned(published.pools)},
                 {"warnings", warnings_of(control)},
                 {"bgp", bgp_summary(control)},
                 {"pools", std::move(pools)}});
}

std::string render(const Json& result) {
  const auto bgp = result.find("bgp");
  const Json summary = bgp == result.end() ? Json(nullptr) : *bgp;
  std::string text = named_values({
      {"site", text_at(result, "site")},
      {"version", text_at(result, "version")},
      {"process", fmt::format("pid {}, up for {}", number_at(result, "pid"),
                              duration_text(real_at(result, "uptime_seconds")))},
      {"workers", fmt::format("{}, {} alive", number_at(result, "workers"),
                              number_at(result, "workers_alive"))},
      {"ports", number_text(result, "ports")},
      {"VIPs", number_text(result, "vips")},
      {"services", number_text(result, "services")},
      {"snapshot",
       fmt::format("generation {}, published {} ago", number_at(result, "snapshot_generation"),
                   duration_text(real_at(result, "snapshot_age_seconds")))},
      {"hash seed", "fingerprint " + text_at(result, "seed_fingerprint")},
      {"BGP", bgp_summary_text(summary)},
  });
  if (const auto stopping = text_at(result, "stopping"); !stopping.empty())
    text += "stopping: " + stopping + "\n";
  if (const auto trouble = text_at(result, "not_ready"); !trouble.empty())
    text += "ALARM: the data plane is not ready: " + trouble + "\n";
  if (summary.is_object()) text += alarm_lines(summary);
  if (const auto learned = number_at(result, "path_mtus_learned"); learned > 0)
    text += fmt::format(
        "path MTU learned from routers for {} backend{}: `holdfast pool show POOL` has it\n",
        learned, learned == 1 ? "" : "s");
  text += warning_lines(result);
  if (const auto slow = number_at(result, "slow_callbacks"); slow > 0) {
    text +=
        fmt::format("the control loop was held for more than 50 ms {} times (see the log)\n", slow);
  }
  Table table({{"POOL"},
               {"BACKENDS", true},
               {"ELIGIBLE", true},
               {"DRAINING", true},
               {"OTHER", true},
               {"NEW FLOWS GO TO"}});
  for (const auto& pool : list_at(result, "pools")) {
    table.add({text_at(pool, "name"), number_text(pool, "backends"), number_text(pool, "eligible"),
               number_text(pool, "draining"), number_text(pool, "other"),
               text_at(pool, "new_flows_to")});
  }
  return text + "\n" + table.text();
}

}  // namespace

Command status_command() {
  return {.name = "status",
          .summary = "Show how the daemon is",
          .example = "holdfast status",
          .run = run,
          .render = render};
}

}  // namespace holdfast

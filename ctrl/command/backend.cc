// SPDX-License-Identifier: Apache-2.0
#include "ctrl/command/backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ctrl/command/common.h"
#include "ctrl/command/drain_follow.h"
#include "ctrl/command/table.h"
#include "ctrl/control_plane.h"
#include "ctrl/reconcile/select.h"

namespace holdfast {
namespace {

std::vector<MembershipKey> keys_of(const std::vector<FollowedBackend>& backends) {
  std::vector<MembershipKey> keys;
  keys.reserve(backends.size());
  for (const auto& backend : backends) keys.push_back(backend.key);
  return keys;
}

std::vector<FollowedBackend> followed(const std::vector<SelectedBackend>& selected) {
  std::vector<FollowedBackend> result;
  result.reserve(selected.size());
  for (const auto& one : selected) result.push_back({one.key(), one.backend->number, one.label()});
  return result;
}

/// What an operator may not expect: with all backends of a pool draining, somebody must still
/// serve.
void warn_of_placement(const ControlPlane& control, const std::vector<FollowedBackend>& backends,
                       Reply& reply) {
  for (const auto& pool : control.published().pools) {
    const bool concerned = std::any_of(backends.begin(), backends.end(),
                                       [&](const auto& one) { return one.key.pool == pool.name; });
    if (!concerned || pool.placement != PoolPlacement::draining_only) continue;
    reply.event(
        {{"warning", fmt::format("pool {} has no eligible backend left: its new flows still "
                                 "go to the draining ones",
                                 pool.name)}});
  }
}

void run_drain(ControlPlane& control, const Json& arguments, const std::shared_ptr<Reply>& reply) {
  const bool no_wait = flag_at(arguments, "no-wait");
  const auto wait_for = parse_duration(text_at(arguments, "wait-for"));
  if (no_wait && wait_for) {
    return reply->error({.message = "--no-wait and --wait-for exclude each other",
                         .where = "backend drain",
                         .code = "usage"});
  }
  const auto selected = select_backends(control.published().pools, text_at(arguments, "backend"));
  if (!selected) return reply->error(selected.error());

  auto backends = followed(*selected);
  const auto keys = keys_of(backends);
  const auto timeout = parse_duration(text_at(arguments, "timeout"));
  control.drain(
      keys, timeout, [&control, no_wait, wait_for, backends = std::move(backends), reply] {
        warn_of_placement(control, backends, *reply);
        if (!no_wait) return follow_drain(control, {backends, wait_for}, reply);
        const auto left = flows_left(control, backends);
        reply->result(
            {{"waited", false}, {"active_flows", left.active}, {"backends", left.backends}});
      });
}

std::string labels_of(const Json& body) {
  std::string text;
  for (const auto& backend : list_at(body, "backends")) {
    text += (text.empty() ? "" : ", ") + text_at(backend, "backend");
  }
  return text;
}

std::string flows_text(std::uint64_t count) {
  return count == 1 ? "1 active flow" : fmt::format("{} active flows", count);
}

/// "a 12, b 3" when several backends are drained at once.
std::string each_text(const Json& body) {
  const auto& backends = list_at(body, "backends");
  if (backends.size() < 2) return {};
  std::string text;
  for (const auto& backend : backends) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", text_at(backend, "backend"),
                        number_at(backend, "active_flows"));
  }
  return " (" + text + ")";
}

std::string render_drain_event(const Json& event) {
  if (const auto warning = text_at(event, "warning"); !warning.empty()) {
    return "warning: " + warning + "\n";
  }
  auto text = fmt::format("{}: draining for {}, {} left{}", labels_of(event),
                          duration_text(real_at(event, "draining_seconds")),
                          flows_text(number_at(event, "active_flows")), each_text(event));
  const auto last_ended = real_at(event, "empty_since_seconds", -1);
  if (last_ended > 0) text += fmt::format(", the last ended after {}", duration_text(last_ended));
  if (last_ended >= 0) text += "; waiting 1 s to be sure";
  return text + '\n';
}

std::string render_drain(const Json& result) {
  const auto labels = labels_of(result);
  const auto after = duration_text(real_at(result, "after_seconds"));
  const auto flows = flows_text(number_at(result, "active_flows"));
  if (flag_at(result, "empty")) {
    const auto confirmed = duration_text(real_at(result, "confirmed_after_seconds"));
    if (real_at(result, "after_seconds") > 0)
      return fmt::format("{}: empty: the last active flow ended after {}, confirmed after {}\n",
                         labels, after, confirmed);
    return fmt::format("{}: empty: it had no active flow, confirmed after {}\n", labels, confirmed);
  }
  if (result.contains("waited")) return fmt::format("{}: draining, {} left\n", labels, flows);
  return fmt::format("{}: deadline passed after {} with {} left; each moves at its next packet\n",
                     labels, after, flows);
}

void run_enable(ControlPlane& control, const Json& arguments, const std::shared_ptr<Reply>& reply) {
  const auto selected = select_backends(control.published().pools, text_at(arguments, "backend"));
  if (!selected) return reply->error(selected.error());
  const auto backends = followed(*selected);
  Json was_draining = Json::array();
  for (const auto& key : keys_of(backends)) {
    const auto it = control.state().memberships.find(key);
    was_draining.push_back(it != control.state().memberships.end() && it->second.drain.draining());
  }
  control.enable(keys_of(backends), [&control, name = text_at(arguments, "backend"), was_draining,
                                     reply] {
    const auto now = select_backends(control.published().pools, name);
    if (!now) return reply->error(now.error());
    Json rows = Json::array();
    for (std::size_t i = 0; i < now->size(); ++i) {
      rows.push_back({{"backend", (*now)[i].label()},
                      {"state", name_of((*now)[i].backend->state)},
                      {"reason", (*now)[i].backend->reason},
                      {"was_draining", i < was_draining.size() && was_draining[i].get<bool>()}});
    }
    reply->result({{"backends", std::move(rows)}});
  });
}

std::string render_enable(const Json& result) {
  std::string text;
  for (const auto& backend : list_at(result, "backends")) {
    text += fmt::format("{}: {}, now {} ({})\n", text_at(backend, "backend"),
                        flag_at(backend, "was_draining") ? "enabled" : "was not draining",
                        text_at(backend, "state"), text_at(backend, "reason"));
  }
  return text;
}

}  // namespace

Command backend_drain_command() {
  return {
      .name = "backend drain",
      .summary = "Send a backend no new flows, and wait until it has no active flow left",
      .example = "holdfast backend drain web/b1 --timeout 15m",
      .arguments = {kBackendArgument,
                    {.kind = Argument::Kind::duration,
                     .name = "timeout",
                     .value = "DURATION",
                     .help = "Move flows that are still there after this (default: TCP flows stay "
                             "until they end)"},
                    {.kind = Argument::Kind::flag,
                     .name = "no-wait",
                     .value = {},
                     .help = "Start the drain and return at once"},
                    {.kind = Argument::Kind::duration,
                     .name = "wait-for",
                     .value = "DURATION",
                     .help = "Stop waiting after this with exit code 5; the drain goes on"}},
      .changes = true,
      .run = run_drain,
      .render = render_drain,
      .render_event = render_drain_event};
}

Command backend_enable_command() {
  return {.name = "backend enable",
          .summary = "End a backend's drain: it may get new flows again",
          .example = "holdfast backend enable web/b1",
          .arguments = {kBackendArgument},
          .changes = true,
          .run = run_enable,
          .render = render_enable};
}

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
#include "ctrl/command/flow_durations.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

#include "ctrl/command/common.h"
#include "ctrl/command/flow_walk.h"
#include "ctrl/command/table.h"
#include "ctrl/control_plane.h"
#include "ctrl/reconcile/select.h"

namespace holdfast {
namespace {

constexpr std::array<std::pair<std::string_view, double>, 3> kShares{
    {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}}};

Json json_of(const std::optional<LifetimeEstimate>& estimate) {
  if (!estimate) return nullptr;
  return {{"seconds", estimate->time.count()}, {"more", estimate->more}};
}

void run(ControlPlane& control, const Json& arguments, const std::shared_ptr<Reply>& reply) {
  const auto service = select_service(control.config().services, text_at(arguments, "service"));
  if (!service) return reply->error(service.error());
  const bool tcp = (*service)->protocol == IpProtocol::tcp;
  Json answer{{"service", (*service)->name},
              {"protocol", tcp ? "tcp" : "udp"},
              {"since_seconds", seconds_since(control.started())}};
  const auto number = control.state().service_numbers.find((*service)->name);
  if (!number) {  // no packet has come to it either
    answer.update(StreamTally(kNoService, {}).json(tcp));
    return reply->result(answer);
  }
  const auto tally = std::make_shared<StreamTally>(*number, control.flows().read_streams(*number));
  walk_flows(control,
             {.visit =
                  [tally](const FlowRow& row) {
                    tally->add(row);
                    return true;
                  },
              .done =
                  [tally, reply, tcp, answer = std::move(answer)](auto) mutable {
                    answer.update(tally->json(tcp));
                    reply->result(answer);
                  }},
             reply);
}

/// "12.3 s"; the clock has quarters of a second.
std::string time_text(double seconds) {
  return seconds < 0.25 ? "under 0.25 s" : duration_text(seconds);
}

std::string estimate_text(const Json& estimate, std::string_view why) {
  const auto seconds = real_at(estimate, "seconds");
  if (!flag_at(estimate, "more")) return time_text(seconds);
  return fmt::format("more than {}: {}", duration_text(seconds), why);
}

std::string render(const Json& result) {
  const auto since = duration_text(real_at(result, "since_seconds"));
  const auto ended = number_at(result, "ended");
  const auto open = number_at(result, "open");
  const auto lost = number_at(result, "lost");
  const auto excluded = number_at(result, "excluded");
  std::vector<NamedValue> rows{{"service", text_at(result, "service")}};
  if (ended + open + lost == 0) {
    rows.push_back({"durations", fmt::format("none: no stream that began since the start {} ago "
                                             "was seen",
                                             since)});
  } else {
    for (const auto& [name, share] : kShares)
      rows.push_back({std::string(name),
                      estimate_text(list_at(result, name), "too few have ended to say how much")});
    rows.push_back({"max", estimate_text(list_at(result, "max"), "its end was not seen")});
    if (text_at(result, "protocol") == "tcp")
      rows.push_back({"client resets",
                      fmt::format("{} of those that ended ({})",
                                  percent_text(static_cast<double>(number_at(result, "reset")),
                                               static_cast<double>(ended)),
                                  number_at(result, "reset"))});
    rows.push_back(
        {"streams", fmt::format("{} ended, {} open, {} lost from sight; since the start {} ago",
                                ended, open, lost, since)});
  }
  if (excluded > 0)
    rows.push_back({"excluded", fmt::format("{} that had begun elsewhere or before", excluded)});
  return named_values(rows);
}

}  // namespace

StreamTally::StreamTally(ServiceNumber service, const StreamRecords& over)
    : service_(service),
      lifetimes_(over.lifetimes),
      lost_(sum_of(over.lifetimes.censored)),
      excluded_(over.excluded),
      reset_(over.reset) {}

void StreamTally::add(const FlowRow& row) {
  if (row.service != service_ || !row.stream) return;
  if (row.adopted) {
    ++excluded_;
    return;
  }
  const auto bin = duration_bin(std::chrono::duration_cast<Quarters>(row.age - row.idle));
  if (row.state == FlowRow::State::closing) {
    ++lifetimes_.ended[bin];
    if (row.reset) ++reset_;
  } else {
    ++lifetimes_.censored[bin];
    ++open_;
  }
}

Json StreamTally::json(bool tcp) const {
  Json json = Json::object();
  for (const auto& [name, share] : kShares)
    json[std::string(name)] = json_of(lifetime_quantile(lifetimes_, share));
  json["max"] = json_of(longest_lifetime(lifetimes_));
  const auto ended = sum_of(lifetimes_.ended);
  json["ended"] = ended;
  json["open"] = open_;
  json["lost"] = lost_;
  json["excluded"] = excluded_;
  if (tcp) {
    json["reset"] = reset_;
    json["reset_share"] =
        ended == 0 ? Json(nullptr) : Json(static_cast<double>(reset_) / static_cast<double>(ended));
  }
  return json;
}

Command flows_durations_command() {
  return {.name = "flows durations",
          .summary = "Tell how long a service's streams last, the open ones taken into account",
          .example = "holdfast flows durations https",
          .arguments = {{.kind = Argument::Kind::positional,
                         .name = "service",
                         .value = "SERVICE",
                         .help = "The service's name"}},
          .run = run,
          .render = render};
}

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
#include "ctrl/command/flows.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "ctrl/command/common.h"
#include "ctrl/command/flow_walk.h"
#include "ctrl/command/table.h"
#include "ctrl/control_plane.h"
#include "lib/base/digits.h"
#include "lib/model/flow_cursor.h"

namespace holdfast {
namespace {

// Answers are made in the control thread, which may not be held for long.
constexpr std::size_t kMostRows = 1000;
constexpr std::size_t kDefaultRows = 100;
constexpr std::size_t kMostGroups = 1000;

FlowWorld world_of(const ControlPlane& control) {
  return {control.config().services, control.state().service_numbers, control.published().pools};
}

double seconds_of(std::chrono::milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

/// A cursor is good for one run of the daemon and the same filters.
std::string list_of(const ControlPlane& control, const Json& arguments) {
  auto text = fmt::format("{}", control.started().count());
  for (const auto* const name : {"service", "backend", "state", "idle-over", "age-over"})
    text += '\n' + text_at(arguments, name);
  return text;
}

void run_list(ControlPlane& control, const Json& arguments, const std::shared_ptr<Reply>& reply) {
  const auto refuse = [&](std::string message) {
    reply->error({.message = std::move(message), .where = "flows list", .code = "usage"});
  };
  auto filter = read_filter(world_of(control), arguments);
  if (!filter) return reply->error(filter.error());
  std::size_t limit = kDefaultRows;
  if (arguments.contains("limit")) {
    const auto given = parse_decimal<std::size_t>(text_at(arguments, "limit"), kMostRows);
    if (!given || *given == 0)
      return refuse(fmt::format("--limit is a whole number from 1 to {}", kMostRows));
    limit = *given;
  }
  auto list = list_of(control, arguments);
  FlowPosition from;
  if (arguments.contains("cursor")) {
    const auto given = read_flow_cursor(text_at(arguments, "cursor"), list);
    if (!given)
      return refuse(
          "--cursor is none that this run of holdfastd gave for these filters: begin again "
          "without it");
    from = *given;
  }

  const auto rows = std::make_shared<std::vector<FlowRow>>();
  walk_flows(
      control,
      {.from = from,
       .visit =
           [rows, limit, filter = std::move(*filter)](const FlowRow& row) {
             if (filter.matches(row)) rows->push_back(row);
             return rows->size() < limit;
           },
       .done =
           [&control, rows, reply, list = std::move(list)](std::optional<FlowPosition> next) {
             reply->result(page_json(*rows, next ? write_flow_cursor(*next, list) : "",
                                     FlowNames(world_of(control))));
           }},
      reply);
}

std::string render_list(const Json& result) {
  const auto& flows = list_at(result, "flows");
  if (flows.empty()) return "there is no such flow\n";
  Table table({{"WORKER", true},
               {"SERVICE"},
               {"BACKEND"},
               {"STATE"},
               {"AGE", true},
               {"IDLE", true},
               {"TAG"}});
  for (const auto& flow : flows) {
    table.add({number_text(flow, "worker"), text_at(flow, "service"), text_at(flow, "backend"),
               text_at(flow, "state"),
               (flag_at(flow, "adopted") ? "> " : "") + duration_text(real_at(flow, "age_seconds")),
               duration_text(real_at(flow, "idle_seconds")), text_at(flow, "tag")});
  }
  auto text = table.text();
  if (const auto cursor = text_at(result, "cursor"); !cursor.empty())
    text += fmt::format("the next page: the same command with --cursor {}\n", cursor);
  return text;
}

void run_count(ControlPlane& control, const Json& arguments, const std::shared_ptr<Reply>& reply) {
  auto filter = read_filter(world_of(control), arguments);
  if (!filter) return reply->error(filter.error());
  const auto silent = parse_duration(text_at(arguments, "idle"));
  const auto census = std::make_shared<FlowCensus>(silent);
  walk_flows(control,
             {.visit =
                  [census, filter = std::move(*filter)](const FlowRow& row) {
                    if (filter.matches(row)) census->add(row);
                    return true;
                  },
              .done =
                  [&control, census, silent, reply](std::optional<FlowPosition>) {
                    reply->result(census_json(*census, silent, FlowNames(world_of(control))));
                  }},
             reply);
}

void add_tally(Json& object, const FlowTally& flows, bool idle) {
  object["active"] = flows.active;
  if (idle) object["idle"] = flows.idle;
  object["embryonic"] = flows.embryonic;
  object["closing"] = flows.closing;
}

std::string render_count(const Json& result) {
  const bool idle = real_at(result, "idle_over_seconds", -1) >= 0;
  std::vector<Column> columns{{"SERVICE"}, {"BACKEND"}, {"ACTIVE", true}};
  if (idle) columns.push_back({"IDLE", true});
  columns.push_back({"EMBRYONIC", true});
  columns.push_back({"CLOSING", true});
  Table table(columns);
  const auto add = [&](std::string service, std::string backend, const Json& flows) {
    std::vector<std::string> cells{std::move(service), std::move(backend),
                                   number_text(flows, "active")};
    if (idle) cells.push_back(number_text(flows, "idle"));
    cells.push_back(number_text(flows, "embryonic"));
    cells.push_back(number_text(flows, "closing"));
    table.add(std::move(cells));
  };
  for (const auto& group : list_at(result, "groups"))
    add(text_at(group, "service"), text_at(group, "backend"), group);
  add("all", "", list_at(result, "total"));
  auto text = table.text();
  if (const auto more = number_at(result, "groups_left_out"); more > 0)
    text += fmt::format(
        "{} services and backends with fewer flows are left out: ask for one with "
        "--service or --backend\n",
        more);
  if (idle)
    text += fmt::format(
        "IDLE: established or proven, but silent for more than {}; ACTIVE has the "
        "others\n",
        duration_text(real_at(result, "idle_over_seconds")));
  return text;
}

}  // namespace

Json page_json(const std::vector<FlowRow>& rows, const std::string& cursor,
               const FlowNames& names) {
  Json flows = Json::array();
  for (const auto& row : rows) {
    flows.push_back({{"worker", row.worker},
                     {"service", names.service(row.service)},
                     {"backend", names.backend(row.backend)},
                     {"state", name_of(row.state)},
                     {"age_seconds", seconds_of(row.age)},
                     {"idle_seconds", seconds_of(row.idle)},
                     {"adopted", row.adopted},
                     {"tag", tag_text(row.tag)}});
  }
  return {{"flows", std::move(flows)}, {"cursor", cursor.empty() ? Json(nullptr) : Json(cursor)}};
}

Json census_json(const FlowCensus& census, std::optional<std::chrono::milliseconds> silent,
                 const FlowNames& names) {
  Json groups = Json::array();
  for (const auto& group : census.largest(kMostGroups)) {
    Json row{{"service", names.service(group.service)}, {"backend", names.backend(group.backend)}};
    add_tally(row, group.flows, silent.has_value());
    groups.push_back(std::move(row));
  }
  Json total = Json::object();
  add_tally(total, census.total(), silent.has_value());
  const auto left_out = census.groups() - groups.size();
  return {{"idle_over_seconds", silent ? Json(seconds_of(*silent)) : Json(nullptr)},
          {"total", std::move(total)},
          {"groups", std::move(groups)},
          {"groups_left_out", left_out}};
}

Command flows_list_command() {
  return {.name = "flows list",
          .summary =
              "List flows as the flow tables have them: without addresses, which entries do "
              "not hold (`holdfast lookup` finds one flow by its addresses)",
          .example = "holdfast flows list --backend web/b1 --state active --idle-over 15m",
          .arguments = filter_arguments(
              {{.kind = Argument::Kind::text,
                .name = "limit",
                .value = "N",
                .help = "So many in one answer, 1 to 1000 (default: 100)"},
               {.kind = Argument::Kind::text,
                .name = "cursor",
                .value = "CURSOR",
                .help = "Go on where the answer ended that told this CURSOR; same filters"}}),
          .run = run_list,
          .render = render_list};
}

Command flows_count_command() {
  return {.name = "flows count",
          .summary =
              "Count flows by service and backend: active, embryonic, closing, and with "
              "--idle those that have probably ended",
          .example = "holdfast flows count --service web --idle 15m",
          .arguments = filter_arguments(
              {{.kind = Argument::Kind::duration,
                .name = "idle",
                .value = "DURATION",
                .help = "Count active flows that have been silent for longer apart: a server's FIN "
                        "is never seen here, so many of them have ended"}}),
          .run = run_count,
          .render = render_count};
}

}  // namespace holdfast

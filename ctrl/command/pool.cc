// SPDX-License-Identifier: Apache-2.0
#include "ctrl/command/pool.h"

#include <fmt/format.h>

#include "ctrl/command/common.h"
#include "ctrl/command/table.h"
#include "ctrl/control_plane.h"
#include "ctrl/reconcile/select.h"

namespace holdfast {
namespace {

void run_service_list(ControlPlane& control, const Json& /*arguments*/,
                      const std::shared_ptr<Reply>& reply) {
  const auto counters = control.stats().read_stats().services;
  Json services = Json::array();
  for (const auto& service : control.config().services) {
    Json vips = Json::array();
    for (const auto& vip : service.vips) vips.push_back(vip.text());
    Json row{{"name", service.name},
             {"protocol", service.protocol == IpProtocol::udp ? "udp" : "tcp"},
             {"ports", service.ports.text()},
             {"vips", std::move(vips)},
             {"pool", service.pool}};
    if (const auto number = control.state().service_numbers.find(service.name)) {
      add_counters(row, counters_of(counters, *number));
    }
    services.push_back(std::move(row));
  }
  reply->result({{"services", std::move(services)}});
}

std::string render_service_list(const Json& result) {
  Table table({{"SERVICE"},
               {"PROTOCOL"},
               {"PORTS"},
               {"POOL"},
               {"ACTIVE FLOWS", true},
               {"EMBRYONIC", true},
               {"CLOSING", true},
               {"NEW FLOWS", true},
               {"PACKETS", true},
               {"BYTES", true},
               {"VIPS"}});
  for (const auto& service : list_at(result, "services")) {
    table.add({text_at(service, "name"), text_at(service, "protocol"), text_at(service, "ports"),
               text_at(service, "pool"), number_text(service, "active_flows"),
               number_text(service, "embryonic"), number_text(service, "closing"),
               number_text(service, "new_flows"), number_text(service, "packets"),
               number_text(service, "bytes"), joined(list_at(service, "vips"))});
  }
  return table.text();
}

Json drain_json(const Drain& drain) {
  if (!drain.draining()) return nullptr;
  Json json{{"since_seconds", seconds_since(drain.since())}, {"deadline_in_seconds", nullptr}};
  if (const auto deadline = drain.deadline()) {
    json["deadline_in_seconds"] = std::max(0.0, -seconds_since(*deadline));
  }
  return json;
}

/// What a router said about the way to the backend; null: nothing that matters.
Json path_mtu_json(const ControlPlane& control, const std::string& pool,
                   const BackendReport& backend) {
  if (!backend.path_mtu) return nullptr;
  const auto now = boot_now();
  // Not of the report: it is said again and again, and no snapshot follows.
  const auto* learned = control.state().path_mtus.find({pool, backend.address}, now);
  const auto left = learned == nullptr ? Instant{0} : learned->until - now;
  return {{"mtu", backend.path_mtu->mtu},
          {"learned_from", backend.path_mtu->router.text()},
          {"expires_in_seconds", std::chrono::duration<double>(left).count()}};
}

void run_pool_show(ControlPlane& control, const Json& arguments,
                   const std::shared_ptr<Reply>& reply) {
  const auto pool = select_pool(control.published().pools, text_at(arguments, "pool"));
  if (!pool) return reply->error(pool.error());
  const auto& report = **pool;
  const PoolConfig* config = control.config().pool(report.name);
  const auto counters = control.stats().read_stats().backends;
  Json backends = Json::array();
  for (const auto& backend : report.backends) {
    Json row{{"name", backend.name},
             {"address", backend.address.text()},
             {"state", name_of(backend.state)},
             {"reason", backend.reason},
             {"state_seconds", seconds_since(backend.since)},
             {"weight", backend.weight},
             {"configured_weight", backend.configured_weight},
             {"slots", backend.slots},
             {"base_slots", backend.base_slots},
             {"path_mtu", path_mtu_json(control, report.name, backend)}};
    add_counters(row, counters_of(counters, backend.number));
    const auto member = control.state().memberships.find({report.name, backend.address});
    row["drain"] = member == control.state().memberships.end() ? Json(nullptr)
                                                               : drain_json(member->second.drain);
    backends.push_back(std::move(row));
  }
  reply->result({{"pool", report.name},
                 {"encapsulation", config == nullptr ? "" : name_of(config->encapsulation)},
                 {"check", config == nullptr ? "" : config->check},
                 {"table_size", report.table_size},
                 {"base_digest", fmt::format("{:016x}", report.base_digest)},
                 {"effective_digest", fmt::format("{:016x}", report.effective_digest)},
                 {"new_flows_to", name_of(report.placement)},
                 {"backends", std::move(backends)}});
}

std::string placement_text(const std::string& new_flows_to) {
  if (new_flows_to == "eligible") return "the eligible backends";
  if (new_flows_to == "draining") return "the draining backends, because none is eligible";
  return "nobody: they are dropped, because no backend may take them";
}

/// "50 (file: 100)" where an operator set another weight than the file has.
std::string weight_text(const Json& backend) {
  const auto weight = number_at(backend, "weight");
  const auto configured = number_at(backend, "configured_weight");
  if (weight == configured) return fmt::format("{}", weight);
  return fmt::format("{} (file: {})", weight, configured);
}

/// One line for each backend that a router has spoken about.
std::string path_mtu_lines(const Json& result) {
  std::string text;
  for (const auto& backend : list_at(result, "backends")) {
    const auto& said = list_at(backend, "path_mtu");
    if (!said.is_object()) continue;
    text += fmt::format("{}path MTU to {}: {}, learned from {}, for another {}\n",
                        text.empty() ? "\n" : "", text_at(backend, "name"), number_at(said, "mtu"),
                        text_at(said, "learned_from"),
                        duration_text(real_at(said, "expires_in_seconds")));
  }
  return text;
}

std::string render_pool_show(const Json& result) {
  const auto check = text_at(result, "check");
  const bool same = text_at(result, "base_digest") == text_at(result, "effective_digest");
  std::string text = named_values({
      {"pool", text_at(result, "pool")},
      {"encapsulation", text_at(result, "encapsulation")},
      {"check", check.empty() ? "none: backends count as up" : check},
      {"new flows go to", placement_text(text_at(result, "new_flows_to"))},
      {"table", number_text(result, "table_size") + " slots"},
      {"base digest", text_at(result, "base_digest")},
      {"effective digest", text_at(result, "effective_digest") + (same ? " (the base)" : "")},
  });
  Table table({{"BACKEND"},
               {"ADDRESS"},
               {"STATE"},
               {"FOR"},
               {"WEIGHT", true},
               {"SLOTS", true},
               {"SHARE", true},
               {"ACTIVE FLOWS", true},
               {"EMBRYONIC", true},
               {"CLOSING", true},
               {"NEW FLOWS", true},
               {"PACKETS", true},
               {"REASON"}});
  const auto size = static_cast<double>(number_at(result, "table_size"));
  for (const auto& backend : list_at(result, "backends")) {
    table.add({text_at(backend, "name"), text_at(backend, "address"), text_at(backend, "state"),
               duration_text(real_at(backend, "state_seconds")), weight_text(backend),
               number_text(backend, "slots"),
               percent_text(static_cast<double>(number_at(backend, "slots")), size),
               number_text(backend, "active_flows"), number_text(backend, "embryonic"),
               number_text(backend, "closing"), number_text(backend, "new_flows"),
               number_text(backend, "packets"), text_at(backend, "reason")});
  }
  return text + "\n" + table.text() + path_mtu_lines(result);
}

}  // namespace

Command service_list_command() {
  return {.name = "service list",
          .summary = "List the services with their VIPs, pool and flows",
          .example = "holdfast service list",
          .run = run_service_list,
          .render = render_service_list};
}

Command pool_show_command() {
  return {.name = "pool show",
          .summary = "Show a pool's backends: state and why, share of new flows, flows, packets",
          .example = "holdfast pool show web",
          .arguments = {{.kind = Argument::Kind::positional,
                         .name = "pool",
                         .value = "POOL",
                         .help = "The pool's name"}},
          .run = run_pool_show,
          .render = render_pool_show};
}

}  // namespace holdfast

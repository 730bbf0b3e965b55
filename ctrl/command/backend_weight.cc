// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ctrl/command/backend.h"
#include "ctrl/command/common.h"
#include "ctrl/command/table.h"
#include "ctrl/control_plane.h"
#include "ctrl/reconcile/select.h"
#include "lib/base/digits.h"

namespace holdfast {
namespace {

Json backend_json(const SelectedBackend& selected) {
  const auto& backend = *selected.backend;
  return {{"backend", selected.label()},
          {"weight", backend.weight},
          {"configured_weight", backend.configured_weight},
          {"state", name_of(backend.state)},
          {"reason", backend.reason},
          {"slots", backend.slots},
          {"table_size", selected.pool->table_size}};
}

/// The pools of the backends, each once.
Json pools_json(const std::vector<SelectedBackend>& selected) {
  Json pools = Json::array();
  const PoolReport* last = nullptr;  // select_backends() keeps a pool's backends together
  for (const auto& one : selected) {
    if (one.pool == last) continue;
    last = one.pool;
    pools.push_back({{"pool", last->name},
                     {"base_digest", fmt::format("{:016x}", last->base_digest)},
                     {"new_flows_to", name_of(last->placement)}});
  }
  return pools;
}

void run(ControlPlane& control, const Json& arguments, const std::shared_ptr<Reply>& reply) {
  const auto weight = parse_decimal(text_at(arguments, "weight"), kMaxWeight);
  if (!weight) {
    return reply->error(
        {.message = fmt::format("WEIGHT is a whole number from 0 to {}", kMaxWeight),
         .where = "backend weight",
         .code = "usage"});
  }
  const auto name = text_at(arguments, "backend");
  const auto selected = select_backends(control.published().pools, name);
  if (!selected) return reply->error(selected.error());
  std::vector<MembershipKey> keys;
  Json before = Json::array();
  for (const auto& one : *selected) {
    keys.push_back(one.key());
    before.push_back(one.backend->weight);
  }
  control.set_weight(keys, *weight, [&control, name, before, reply] {
    const auto now = select_backends(control.published().pools, name);
    if (!now) return reply->error(now.error());
    Json backends = Json::array();
    for (std::size_t i = 0; i < now->size(); ++i) {
      backends.push_back(backend_json((*now)[i]));
      if (i < before.size()) backends.back()["weight_before"] = before[i];
    }
    reply->result({{"backends", std::move(backends)}, {"pools", pools_json(*now)}});
  });
}

std::string render(const Json& result) {
  std::string text;
  bool overridden = false;
  for (const auto& backend : list_at(result, "backends")) {
    const auto weight = number_at(backend, "weight");
    const auto configured = number_at(backend, "configured_weight");
    overridden = overridden || weight != configured;
    text += fmt::format(
        "{}: weight {} (was {}, the file has {}), {} ({}), {} of the pool's new flows\n",
        text_at(backend, "backend"), weight, number_at(backend, "weight_before"), configured,
        text_at(backend, "state"), text_at(backend, "reason"),
        percent_text(static_cast<double>(number_at(backend, "slots")),
                     static_cast<double>(number_at(backend, "table_size"))));
  }
  for (const auto& pool : list_at(result, "pools")) {
    if (text_at(pool, "new_flows_to") == "none")
      text += fmt::format("warning: no backend of pool {} may take new flows: they are dropped\n",
                          text_at(pool, "pool"));
    text += fmt::format(
        "pool {}: base digest {}; every load balancer must have the same weights, "
        "and so the same digest\n",
        text_at(pool, "pool"), text_at(pool, "base_digest"));
  }
  if (overridden)
    text += "write it into the configuration file, or it is forgotten when holdfastd restarts\n";
  return text;
}

}  // namespace

Command backend_weight_command() {
  return {.name = "backend weight",
          .summary = "Change a backend's share of new flows until holdfastd restarts",
          .example = "holdfast backend weight web/b1 50",
          .arguments = {kBackendArgument,
                        {.kind = Argument::Kind::positional,
                         .name = "weight",
                         .value = "WEIGHT",
                         .help = "0 to 1000, relative to the others of the pool; 0: no new flows, "
                                 "placed ones stay"}},
          .changes = true,
          .run = run,
          .render = render};
}

}  // namespace holdfast

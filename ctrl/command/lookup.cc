// SPDX-License-Identifier: Apache-2.0
#include "ctrl/command/lookup.h"

#include <fmt/format.h>

#include <algorithm>

#include "ctrl/command/flow_words.h"
#include "ctrl/command/table.h"
#include "ctrl/control_plane.h"
#include "lib/net/endpoint.h"
#include "lib/protocol/json.h"

namespace holdfast {
namespace {

std::string_view name_of(FlowRule rule) {
  switch (rule) {
    case FlowRule::own_table:
      return "flow_table";
    case FlowRule::other_table:
      return "other_flow_table";
    case FlowRule::slot:
      return "slot";
    case FlowRule::unchecked_base:
      return "unchecked_base_owner";
    case FlowRule::base_in_grace:
      return "base_owner_in_grace";
    case FlowRule::stateless:
      return "stateless";
  }
  return "?";
}

std::string_view name_of(FlowSighting::State state) {
  switch (state) {
    case FlowSighting::State::embryonic:
      return "embryonic";
    case FlowSighting::State::established:
      return "established";
    case FlowSighting::State::closing:
      return "closing";
  }
  return "?";
}

/// Puts names to numbers and reasons to choices.
class Explainer {
 public:
  Explainer(const FlowAnswer& answer, std::string_view pool, const std::vector<PoolReport>& pools)
      : answer_(answer), pool_name_(pool), pools_(pools) {}

  [[nodiscard]] Json owner(BackendNumber number) const {
    const auto found = find(number);
    if (found.backend == nullptr) return nullptr;
    return {{"backend", found.label()},
            {"address", found.backend->address.text()},
            {"state", holdfast::name_of(found.backend->state)},
            {"reason", found.backend->reason}};
  }

  [[nodiscard]] Json table(const FlowSighting& seen) const {
    return {{"worker", seen.worker},
            {"backend", label(seen.backend)},
            {"state", name_of(seen.state)},
            {"proven", seen.proven},
            {"stays", seen.stays}};
  }

  [[nodiscard]] Json choice(unsigned worker, const FlowChoice& choice) const {
    Json json{{"backend", nullptr},
              {"rule", name_of(choice.rule)},
              {"dropped", nullptr},
              {"because", because(worker, choice)}};
    if (choice.backend != kNoBackend) json["backend"] = label(choice.backend);
    if (choice.dropped) json["dropped"] = text_of(*choice.dropped).name;
    return json;
  }

 private:
  struct Found {
    const PoolReport* pool = nullptr;
    const BackendReport* backend = nullptr;

    [[nodiscard]] std::string label() const { return pool->name + "/" + backend->name; }
  };

  [[nodiscard]] Found find(BackendNumber number) const {
    for (const auto& pool : pools_)
      for (const auto& backend : pool.backends)
        if (number != kNoBackend && backend.number == number) return {&pool, &backend};
    return {};
  }

  [[nodiscard]] std::string label(BackendNumber number) const {
    const auto found = find(number);
    return found.backend == nullptr ? "a removed backend" : found.label();
  }

  /// "web/b1, which is down (check failed ...)"
  [[nodiscard]] std::string with_state(BackendNumber number) const {
    const auto found = find(number);
    if (found.backend == nullptr) return label(number);
    return fmt::format("{}, which is {} ({})", found.label(),
                       holdfast::name_of(found.backend->state), found.backend->reason);
  }

  [[nodiscard]] std::string because(unsigned worker, const FlowChoice& choice) const {
    auto text = rule_text(worker, choice);
    if (choice.dropped == DropReason::neigh_unresolved)
      text += "; but its next hop was never resolved, so the packet is dropped";
    return text;
  }

  [[nodiscard]] std::string rule_text(unsigned worker, const FlowChoice& choice) const {
    switch (choice.rule) {
      case FlowRule::own_table:
        return fmt::format("the flow table of worker {} has it", worker);
      case FlowRule::other_table:
        return fmt::format("the flow table of worker {} has it", answer_.tables.front().worker);
      case FlowRule::slot:
        return table_let_go(worker) + slot_text(choice.backend);
      case FlowRule::unchecked_base:
        if (choice.backend == kNoBackend)
          return table_let_go(worker) +
                 fmt::format(
                     "the slot's base owner is {}, and has not been checked since the "
                     "start: new flows wait for that, the client sends again",
                     label(answer_.base_owner));
        return table_let_go(worker) +
               "it is the slot's base owner and has not been checked since the start: a flow from "
               "before the start most likely was there";
      case FlowRule::base_in_grace:
        return table_let_go(worker) +
               "it is the slot's base owner and went down a moment ago: a flow that runs most "
               "likely was there";
      case FlowRule::stateless:
        return slot_text(choice.backend) + ", and the service is stateless";
    }
    return "?";
  }

  /// Why an entry that there is does not decide.
  [[nodiscard]] std::string table_let_go(unsigned worker) const {
    const auto own = std::find_if(answer_.tables.begin(), answer_.tables.end(),
                                  [&](const auto& seen) { return seen.worker == worker; });
    if (own == answer_.tables.end() || own->stays) return {};
    return fmt::format("the flow table of worker {} has it on {}, and its flows do not stay; ",
                       worker, with_state(own->backend));
  }

  [[nodiscard]] std::string slot_text(BackendNumber backend) const {
    if (backend == kNoBackend)
      return fmt::format("no backend of pool {} may take new flows", pool_name_);
    if (backend == answer_.base_owner) return "it is the slot's base owner";
    return fmt::format("it is the slot's owner in the overlay, instead of the base owner {}",
                       with_state(answer_.base_owner));
  }

  const FlowAnswer& answer_;
  std::string_view pool_name_;
  const std::vector<PoolReport>& pools_;
};

void run(ControlPlane& control, const Json& arguments, const std::shared_ptr<Reply>& reply) {
  const auto refuse = [&](std::string message) {
    reply->error({.message = std::move(message), .where = "lookup", .code = "usage"});
  };
  const auto protocol = text_at(arguments, "protocol");
  if (protocol != "tcp" && protocol != "udp") return refuse("the protocol is tcp or udp");
  constexpr std::string_view kForm =
      "must be an address with a port such as 192.0.2.1:443 or [2001:db8::1]:443";
  const auto source = Endpoint::parse(text_at(arguments, "source"));
  if (!source) return refuse(fmt::format("SOURCE {}", kForm));
  const auto destination = Endpoint::parse(text_at(arguments, "destination"));
  if (!destination) return refuse(fmt::format("DESTINATION {}", kForm));
  if (source->address.family() != destination->address.family())
    return refuse("SOURCE and DESTINATION must both be IPv4 or both be IPv6");

  const FlowQuestion question{.protocol = protocol == "tcp" ? IpProtocol::tcp : IpProtocol::udp,
                              .client = source->address,
                              .client_port = source->port,
                              .vip = destination->address,
                              .vip_port = destination->port};
  const auto answer = control.flows().look_up(question);
  const auto& services = control.config().services;
  const auto service =
      std::find_if(services.begin(), services.end(), [&](const ServiceConfig& candidate) {
        return answer.service != kNoService &&
               control.state().service_numbers.find(candidate.name) == answer.service;
      });
  const bool found = service != services.end();
  reply->result(explain(question, answer, found ? std::string_view(service->name) : "",
                        found ? std::string_view(service->pool) : "", control.published().pools));
}

std::string target_text(const Json& choice) {
  const auto backend = text_at(choice, "backend");
  const auto dropped = text_at(choice, "dropped");
  if (dropped.empty()) return backend;
  if (backend.empty()) return fmt::format("nowhere, it is dropped ({})", dropped);
  return fmt::format("{}, but it is dropped ({})", backend, dropped);
}

/// One line for all workers, or one for each where it depends on who gets the packet.
void add_choices(std::vector<NamedValue>& rows, const Json& workers, std::string_view key,
                 const std::string& name) {
  const auto target_of = [&](const Json& worker) { return target_text(list_at(worker, key)); };
  const bool same = std::all_of(workers.begin(), workers.end(), [&](const Json& worker) {
    return target_of(worker) == target_of(workers.front());
  });
  for (const auto& worker : workers) {
    const auto where =
        same ? name : fmt::format("{} at worker {}", name, number_at(worker, "worker"));
    rows.push_back({where, target_of(worker)});
    rows.push_back({"  because", text_at(list_at(worker, key), "because")});
    if (same) break;
  }
}

std::string owner_text(const Json& owner) {
  if (!owner.is_object()) return "none";
  return fmt::format("{}, {} ({})", text_at(owner, "backend"), text_at(owner, "state"),
                     text_at(owner, "reason"));
}

std::string render(const Json& result) {
  std::vector<NamedValue> rows{
      {"flow", fmt::format("{} {} to {}", text_at(result, "protocol"), text_at(result, "source"),
                           text_at(result, "destination"))}};
  if (!flag_at(result, "is_vip")) {
    rows.push_back({"goes to", "the kernel: " + text_at(result, "because")});
    return named_values(rows);
  }
  if (const auto dropped = text_at(result, "dropped"); !dropped.empty()) {
    rows.push_back({"goes to", fmt::format("nowhere, it is {} ({}): {}",
                                           flag_at(result, "rejected") ? "rejected" : "dropped",
                                           dropped, text_at(result, "because"))});
    return named_values(rows);
  }
  const auto& workers = list_at(result, "workers");
  add_choices(rows, workers, "next", "goes to");
  if (text_at(result, "protocol") == "tcp") {
    add_choices(rows, workers, "syn", "a SYN goes to");
    if (!flag_at(result, "same_after_silence"))
      add_choices(rows, workers, "syn_after_silence", "after 60 s of silence");
  }
  rows.push_back(
      {"service", fmt::format("{}, pool {}", text_at(result, "service"), text_at(result, "pool"))});
  rows.push_back(
      {"slot", fmt::format("{} of {}", number_at(result, "slot"), number_at(result, "slots"))});
  rows.push_back({"base owner", owner_text(list_at(result, "base_owner"))});
  rows.push_back({"owner now", owner_text(list_at(result, "effective_owner"))});
  const auto& tables = list_at(result, "flow_tables");
  for (const auto& table : tables)
    rows.push_back({"flow table", fmt::format("worker {}: {}, {}{}{}", number_at(table, "worker"),
                                              text_at(table, "backend"), text_at(table, "state"),
                                              flag_at(table, "proven") ? ", proven" : "",
                                              flag_at(table, "stays") ? "" : ", does not stay")});
  if (flag_at(result, "stateless"))
    rows.push_back({"flow table", "none: the service is stateless"});
  else if (tables.empty())
    rows.push_back({"flow table", "no worker has it"});
  rows.push_back({"tag", text_at(result, "tag")});
  return named_values(rows);
}

}  // namespace

Json explain(const FlowQuestion& question, const FlowAnswer& answer, std::string_view service,
             std::string_view pool, const std::vector<PoolReport>& pools) {
  Json json{{"protocol", question.protocol == IpProtocol::tcp ? "tcp" : "udp"},
            {"source", Endpoint{question.client, question.client_port}.text()},
            {"destination", Endpoint{question.vip, question.vip_port}.text()},
            {"is_vip", answer.is_vip}};
  if (!answer.is_vip) {
    json["because"] = fmt::format("{} is no VIP", question.vip.text());
    return json;
  }
  if (answer.dropped) {
    json["dropped"] = text_of(*answer.dropped).name;
    json["because"] = text_of(*answer.dropped).sentence;
    json["rejected"] = answer.rejected;
    return json;
  }
  const Explainer explainer(answer, pool, pools);
  json["service"] = service;
  json["pool"] = pool;
  json["stateless"] = answer.stateless;
  json["tag"] = tag_text(answer.tag);
  json["slot"] = answer.slot;
  json["slots"] = answer.slots;
  json["base_owner"] = explainer.owner(answer.base_owner);
  json["effective_owner"] = explainer.owner(answer.effective_owner);
  json["flow_tables"] = Json::array();
  for (const auto& seen : answer.tables) json["flow_tables"].push_back(explainer.table(seen));
  json["workers"] = Json::array();
  bool same_after_silence = true;
  for (unsigned worker = 0; worker < answer.workers.size(); ++worker) {
    const auto& choices = answer.workers[worker];
    Json row{{"worker", worker}, {"next", explainer.choice(worker, choices.next)}};
    if (question.protocol == IpProtocol::tcp) {
      row["syn"] = explainer.choice(worker, choices.syn);
      row["syn_after_silence"] = explainer.choice(worker, choices.syn_after_silence);
      same_after_silence = same_after_silence && choices.syn == choices.syn_after_silence;
    }
    json["workers"].push_back(std::move(row));
  }
  json["same_after_silence"] = same_after_silence;
  return json;
}

Command lookup_command() {
  return {.name = "lookup",
          .summary = "Tell to which backend the packets of one flow go now, and why",
          .example = "holdfast lookup tcp 198.51.100.7:40001 203.0.113.10:443",
          .arguments = {{.kind = Argument::Kind::positional,
                         .name = "protocol",
                         .value = "PROTOCOL",
                         .help = "tcp or udp"},
                        {.kind = Argument::Kind::positional,
                         .name = "source",
                         .value = "SOURCE",
                         .help = "The client, as 198.51.100.7:40001 or [2001:db8::7]:40001"},
                        {.kind = Argument::Kind::positional,
                         .name = "destination",
                         .value = "DESTINATION",
                         .help = "The VIP and its port, as 203.0.113.10:443"}},
          .run = run,
          .render = render};
}

}  // namespace holdfast

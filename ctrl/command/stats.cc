// SPDX-License-Identifier: Apache-2.0
#include "ctrl/command/stats.h"

#include <fmt/format.h>

#include <cstdlib>

#include "ctrl/command/common.h"
#include "ctrl/command/table.h"
#include "ctrl/control_plane.h"

namespace holdfast {
namespace {

/// Both sides of the counter identity (lib/model/stats.h), so that nobody has to add up by hand.
Json identity_of(const PacketCounters& packets) {
  const auto accounted = packets.forwarded + packets.answered + packets.to_kernel +
                         packets.dropped_sum() + packets.held_now;
  const auto sent = packets.forwarded + packets.extra_fragments + packets.answered +
                    packets.injected + packets.from_kernel;
  return {{"received", packets.received},
          {"accounted_for", accounted},
          {"transmitted", packets.transmitted},
          {"sent_for", sent},
          {"holds", packets.received == accounted && packets.transmitted == sent}};
}

template <class Counters, std::size_t kCount>
Json counters_json(const Counters& counters, const NamedCounter<Counters> (&names)[kCount]) {
  Json json = Json::object();
  for (const auto& counter : names) json[std::string(counter.name)] = counters.*counter.value;
  return json;
}

/// The drop reasons one by one are for `holdfast drops`.
Json packets_json(const PacketCounters& packets) {
  Json json = counters_json(packets, kPacketCounters);
  json["dropped"] = packets.dropped_sum();
  return json;
}

Json path_mtu_json(const PathMtuCounters& counters) {
  Json json = Json::object();
  for (const auto& counter : kPathMtuCounters)
    json[std::string(counter.name)] = counters.*counter.value;
  return json;
}

Json flows_json(const FlowTableCounters& flows) { return counters_json(flows, kFlowTableCounters); }

void run_stats(ControlPlane& control, const Json& /*arguments*/,
               const std::shared_ptr<Reply>& reply) {
  const auto stats = control.stats().read_stats();
  PacketCounters packets;
  FlowTableCounters flows;
  Json workers = Json::array();
  for (const auto& worker : stats.workers) {
    packets += worker.packets;
    flows += worker.flows;
    workers.push_back({{"worker", worker.worker},
                       {"cpu", worker.cpu},
                       {"packets", packets_json(worker.packets)},
                       {"flow_table", flows_json(worker.flows)},
                       {"identity", identity_of(worker.packets)},
                       {"polls", worker.polls},
                       {"sleeps", worker.sleeps},
                       {"heartbeat", worker.heartbeat},
                       {"snapshot_generation", worker.snapshot_generation}});
  }
  Json ports = Json::array();
  for (const auto& port : stats.ports) {
    ports.push_back({{"name", port.name},
                     {"up", port.up},
                     {"received", port.received},
                     {"transmitted", port.transmitted},
                     {"missed", port.missed},
                     {"receive_errors", port.receive_errors},
                     {"transmit_errors", port.transmit_errors},
                     {"no_buffers", port.no_buffers}});
  }
  Json steering = Json::array();
  for (const auto& row : stats.steering) {
    steering.push_back({{"port", row.port},
                        {"to_workers", row.to_workers},
                        {"to_kernel", row.to_kernel},
                        {"no_socket", row.no_socket}});
  }
  reply->result({{"packets", packets_json(packets)},
                 {"identity", identity_of(packets)},
                 {"flow_table", flows_json(flows)},
                 {"workers", std::move(workers)},
                 {"ports", std::move(ports)},
                 {"steering", std::move(steering)},
                 {"path_mtu_messages", path_mtu_json(control.path_mtu_counters())}});
}

std::string identity_text(const Json& identity) {
  if (flag_at(identity, "holds")) {
    return "every received packet is accounted for, and every transmitted one";
  }
  const auto difference = [&](const char* a, const char* b) {
    return static_cast<std::int64_t>(number_at(identity, a)) -
           static_cast<std::int64_t>(number_at(identity, b));
  };
  return fmt::format(
      "received - accounted for = {}, transmitted - sent for = {} (a few while packets flow: the "
      "counters are read one after the other)",
      difference("received", "accounted_for"), difference("transmitted", "sent_for"));
}

const Json& part(const Json& object, std::string_view key) { return list_at(object, key); }

/// Names and numbers of one object, several pairs a line would be hard to grep: one each.
std::string counters_text(const Json& counters) {
  Table table({{"COUNTER"}, {"TOTAL", true}});
  for (const auto& [name, value] : counters.items()) table.add({name, value.dump()});
  return table.text();
}

std::string workers_text(const Json& workers) {
  Table table({{"WORKER", true},
               {"CPU", true},
               {"RECEIVED", true},
               {"FORWARDED", true},
               {"ANSWERED", true},
               {"TO KERNEL", true},
               {"DROPPED", true},
               {"FLOWS", true},
               {"CAPACITY", true},
               {"HITS", true},
               {"SIBLING HITS", true},
               {"NOT RECORDED", true},
               {"POLLS", true},
               {"SLEEPS", true},
               {"HEARTBEAT", true},
               {"SNAPSHOT GENERATION", true}});
  for (const auto& worker : workers) {
    const auto& packets = part(worker, "packets");
    const auto& flows = part(worker, "flow_table");
    const auto entries = number_at(flows, "embryonic") + number_at(flows, "established") +
                         number_at(flows, "closing");
    table.add({number_text(worker, "worker"), worker.contains("cpu") ? worker["cpu"].dump() : "-",
               number_text(packets, "received"), number_text(packets, "forwarded"),
               number_text(packets, "answered"), number_text(packets, "to_kernel"),
               number_text(packets, "dropped"), fmt::format("{}", entries),
               number_text(flows, "capacity"), number_text(flows, "hits"),
               number_text(flows, "sibling_hits"), number_text(flows, "not_recorded"),
               number_text(worker, "polls"), number_text(worker, "sleeps"),
               number_text(worker, "heartbeat"), number_text(worker, "snapshot_generation")});
  }
  return table.text();
}

std::string render_stats(const Json& result) {
  std::string text = counters_text(part(result, "packets")) +
                     identity_text(part(result, "identity")) + "\n\nFlow table (all workers)\n" +
                     counters_text(part(result, "flow_table")) + "\n" +
                     workers_text(part(result, "workers"));
  Table ports({{"PORT"},
               {"UP"},
               {"RECEIVED", true},
               {"TRANSMITTED", true},
               {"MISSED", true},
               {"RECEIVE ERRORS", true},
               {"TRANSMIT ERRORS", true},
               {"NO BUFFERS", true}});
  for (const auto& port : part(result, "ports")) {
    ports.add({text_at(port, "name"), flag_at(port, "up") ? "yes" : "no",
               number_text(port, "received"), number_text(port, "transmitted"),
               number_text(port, "missed"), number_text(port, "receive_errors"),
               number_text(port, "transmit_errors"), number_text(port, "no_buffers")});
  }
  if (!ports.empty()) text += "\n" + ports.text();
  Table steering({{"STEERING"}, {"TO WORKERS", true}, {"TO KERNEL", true}, {"NO SOCKET", true}});
  for (const auto& row : part(result, "steering")) {
    steering.add({text_at(row, "port"), number_text(row, "to_workers"),
                  number_text(row, "to_kernel"), number_text(row, "no_socket")});
  }
  if (!steering.empty()) text += "\n" + steering.text();
  return text + "\nPath MTU messages from routers\n" +
         counters_text(part(result, "path_mtu_messages"));
}

}  // namespace

Command stats_command() {
  return {.name = "stats",
          .summary = "Show all counters: packets, flow table, workers, ports, steering",
          .example = "holdfast stats",
          .run = run_stats,
          .render = render_stats};
}

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
#include "ctrl/command/bgp.h"

#include <fmt/format.h>

#include "ctrl/command/common.h"
#include "ctrl/command/table.h"
#include "ctrl/control_plane.h"

namespace holdfast {
namespace {

std::string_view name_of(RibState state) {
  switch (state) {
    case RibState::unknown:
      return "unknown";
    case RibState::absent:
      return "no";
    case RibState::other:
      return "other";
    case RibState::same:
      return "yes";
  }
  return "?";
}

/// One word for all three states of a VIP, from what was read back.
std::string_view announce_state(const VipRoute& route) {
  const bool wanted = route.wanted().announcement.has_value();
  if (!route.wanted().own) return "off";
  switch (route.rib()) {
    case RibState::unknown:
      return "unknown";
    case RibState::absent:
      return wanted ? "announcing" : "withdrawn";
    case RibState::other:
      if (route.wanted().held) return "held";
      return wanted ? "announcing" : "withdrawing";
    case RibState::same:
      return "announced";
  }
  return "?";
}

Json alarms_json(const Announcer& announcer) {
  Json alarms = Json::array();
  for (auto& alarm : announcer.alarms()) alarms.push_back(std::move(alarm));
  return alarms;
}

Json peers_json(const Announcer& announcer) {
  Json peers = Json::array();
  for (const auto& [address, view] : announcer.peers()) {
    peers.push_back({{"address", address.text()},
                     {"as", view.peer.as},
                     {"session", view.peer.established ? "established" : "down"},
                     {"session_seconds", seconds_since(view.since)},
                     {"ipv4", view.peer.ipv4},
                     {"ipv6", view.peer.ipv6}});
  }
  return peers;
}

Json vip_json(const Announcer& announcer, const IpAddress& vip, const VipRoute& route) {
  Json sent = Json::array();
  Json not_sent = Json::array();
  for (const auto& peer : announcer.peers_in_use(vip.family()))
    (route.sent_to(peer) ? sent : not_sent).push_back(peer.text());
  const bool read = route.rib() != RibState::unknown;
  return {{"vip", vip.text()},
          {"wanted", route.wanted().announcement.has_value()},
          {"why_not", route.wanted().why_not},
          {"in_rib", name_of(route.rib())},
          {"in_rib_seconds", read ? Json(seconds_since(route.rib_since())) : Json(nullptr)},
          {"sent_to", std::move(sent)},
          {"not_sent_to", std::move(not_sent)},
          {"trouble", route.trouble()},
          {"alarm", route.alarm()}};
}

void run_bgp(ControlPlane& control, const Json& /*arguments*/,
             const std::shared_ptr<Reply>& reply) {
  const auto& bgp = control.config().bgp;
  const auto* announcer = control.announcer();
  if (!bgp || announcer == nullptr) {
    reply->result({{"speaker", nullptr}, {"state", "off"}});
    return;
  }
  const auto& link = announcer->link();
  const auto& [as, router_id] = link.identity();
  const bool known = as != 0;  // it was up once
  Json vips = Json::array();
  for (const auto& [vip, route] : announcer->routes())
    vips.push_back(vip_json(*announcer, vip, route));
  reply->result({{"speaker", bgp->gobgp},
                 {"state", name_of(link.state())},
                 {"state_seconds", seconds_since(link.since())},
                 {"why", link.why()},
                 {"as", known ? Json(as) : Json(nullptr)},
                 {"router_id", known ? Json(router_id) : Json(nullptr)},
                 {"stopping", control.stopping()},
                 {"alarms", alarms_json(*announcer)},
                 {"peers", peers_json(*announcer)},
                 {"vips", std::move(vips)}});
}

std::string families_text(const Json& peer) {
  const bool v4 = flag_at(peer, "ipv4");
  const bool v6 = flag_at(peer, "ipv6");
  return v4 && v6 ? "IPv4 IPv6" : v4 ? "IPv4" : v6 ? "IPv6" : "none";
}

std::string as_text(const Json& result) {
  const auto as = number_at(result, "as");
  if (as == 0) return "unknown";
  return fmt::format("{}, router ID {}", as, text_at(result, "router_id"));
}

std::string render_bgp(const Json& result) {
  if (text_at(result, "state") == "off")
    return "nothing is announced: there is no [bgp] in the configuration\n";
  const auto why = text_at(result, "why");
  std::string text = named_values({
      {"speaker", "gobgpd at " + text_at(result, "speaker")},
      {"state",
       fmt::format("{} for {}{}", text_at(result, "state"),
                   duration_text(real_at(result, "state_seconds")), why.empty() ? "" : ": " + why)},
      {"AS", as_text(result)},
  });
  if (const auto stopping = text_at(result, "stopping"); !stopping.empty())
    text += "stopping: " + stopping + "\n";
  text += alarm_lines(result);

  Table peers({{"PEER"}, {"AS", true}, {"SESSION"}, {"FOR"}, {"FAMILIES"}});
  for (const auto& peer : list_at(result, "peers")) {
    peers.add({text_at(peer, "address"), number_text(peer, "as"), text_at(peer, "session"),
               duration_text(real_at(peer, "session_seconds")), families_text(peer)});
  }
  Table vips({{"VIP"}, {"WANTED"}, {"IN RIB"}, {"FOR"}, {"SENT TO"}, {"NOT SENT TO"}, {"REASON"}});
  for (const auto& vip : list_at(result, "vips")) {
    const auto trouble = text_at(vip, "trouble");
    const auto since = vip.find("in_rib_seconds");
    vips.add({text_at(vip, "vip"), flag_at(vip, "wanted") ? "yes" : "no", text_at(vip, "in_rib"),
              since != vip.end() && since->is_number() ? duration_text(since->get<double>()) : "-",
              joined(list_at(vip, "sent_to")), joined(list_at(vip, "not_sent_to")),
              trouble.empty() ? text_at(vip, "why_not") : trouble});
  }
  return text + "\n" + (peers.empty() ? "no peers\n" : peers.text()) + "\n" + vips.text();
}

void run_vip_list(ControlPlane& control, const Json& /*arguments*/,
                  const std::shared_ptr<Reply>& reply) {
  const auto wanted = control.wanted();
  const auto* announcer = control.announcer();
  const auto services = services_by_vip(control.config());
  Json vips = Json::array();
  for (const auto& vip : control.config().vips) {
    std::string_view state = "off";
    std::string reason = wanted.at(vip.address).why_not;
    if (announcer != nullptr) {
      const auto& route = announcer->routes().at(vip.address);
      state = announce_state(route);
      reason = route.wanted().why_not;
      if (!route.trouble().empty()) reason = route.trouble();
      if (!route.alarm().empty()) reason = route.alarm();
      if (route.wanted().own && reason.empty() && !announcer->link().up())
        reason = fmt::format("gobgpd is {}", name_of(announcer->link().state()));
    }
    vips.push_back({{"vip", vip.address.text()},
                    {"services", services.at(vip.address)},
                    {"wanted", wanted.at(vip.address).announcement.has_value()},
                    {"announce", state},
                    {"reason", std::move(reason)}});
  }
  reply->result({{"vips", std::move(vips)}});
}

std::string render_vip_list(const Json& result) {
  Table table({{"VIP"}, {"SERVICES"}, {"ANNOUNCED"}, {"REASON"}});
  for (const auto& vip : list_at(result, "vips")) {
    table.add({text_at(vip, "vip"), joined(list_at(vip, "services")), text_at(vip, "announce"),
               text_at(vip, "reason")});
  }
  return table.text();
}

}  // namespace

std::map<IpAddress, std::vector<std::string_view>> services_by_vip(const Config& config) {
  std::map<IpAddress, std::vector<std::string_view>> services;
  for (const auto& vip : config.vips) services[vip.address];
  for (const auto& service : config.services)
    for (const auto& vip : service.vips) services[vip].push_back(service.name);
  return services;
}

Json bgp_summary(const ControlPlane& control) {
  const auto& bgp = control.config().bgp;
  const auto* announcer = control.announcer();
  if (!bgp || announcer == nullptr) return nullptr;
  unsigned established = 0;
  for (const auto& [address, view] : announcer->peers()) established += view.peer.established;
  unsigned wanted = 0;
  unsigned announced = 0;
  for (const auto& [vip, route] : announcer->routes()) {
    wanted += route.wanted().announcement.has_value();
    announced += route.rib() == RibState::same;
  }
  return {{"speaker", bgp->gobgp},
          {"state", name_of(announcer->link().state())},
          {"state_seconds", seconds_since(announcer->link().since())},
          {"why", announcer->link().why()},
          {"peers", announcer->peers().size()},
          {"peers_established", established},
          {"vips_wanted", wanted},
          {"vips_announced", announced},
          {"alarms", alarms_json(*announcer)}};
}

std::string alarm_lines(const Json& result) {
  std::string text;
  for (const auto& alarm : list_at(result, "alarms"))
    if (alarm.is_string()) text += "ALARM: " + alarm.get<std::string>() + "\n";
  return text;
}

std::string bgp_summary_text(const Json& summary) {
  if (!summary.is_object()) return "off: nothing is announced";
  const auto why = text_at(summary, "why");
  std::string text = fmt::format(
      "gobgpd at {} {} for {}{}", text_at(summary, "speaker"), text_at(summary, "state"),
      duration_text(real_at(summary, "state_seconds")), why.empty() ? "" : ": " + why);
  if (text_at(summary, "state") == "up")
    text += fmt::format("; {} of {} sessions, {} of {} wanted VIPs announced",
                        number_at(summary, "peers_established"), number_at(summary, "peers"),
                        number_at(summary, "vips_announced"), number_at(summary, "vips_wanted"));
  return text;
}

Command bgp_command() {
  return {.name = "bgp",
          .summary = "Show the BGP speaker, its sessions, and which VIPs are announced to whom",
          .example = "holdfast bgp",
          .run = run_bgp,
          .render = render_bgp};
}

Command vip_list_command() {
  return {.name = "vip list",
          .summary = "List the VIPs with their services, and whether they are announced",
          .example = "holdfast vip list",
          .run = run_vip_list,
          .render = render_vip_list};
}

}  // namespace holdfast

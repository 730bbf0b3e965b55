// SPDX-License-Identifier: Apache-2.0
#include "tools/agent/report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace holdfast::agent {
namespace {

template <class T>
std::vector<std::string> texts(const std::vector<T>& list) {
  std::vector<std::string> result;
  result.reserve(list.size());
  for (const auto& entry : list) result.push_back(entry.text());
  return result;
}

/// A bare address where the prefix is one: as operators write it.
std::vector<std::string> texts(const std::vector<Prefix>& list) {
  std::vector<std::string> result;
  for (const auto& prefix : list) {
    const int width = prefix.address.is_v4() ? 32 : 128;
    result.push_back(prefix.length == width ? prefix.address.text() : prefix.text());
  }
  return result;
}

std::string place(const Attachment& attachment) {
  if (attachment.running) return fmt::format("{} mode", name_of(attachment.mode));
  if (attachment.interface_index == 0)
    return fmt::format("not running: the interface is gone; holdfast-agent detach {} clears this",
                       attachment.interface);
  return "not running here: in another network namespace";
}

std::string text_report(const Attachment& attachment) {
  const auto& [settings, counters] = attachment.state;
  std::string text = fmt::format("{}: {}\n", attachment.interface, place(attachment));
  text += fmt::format("  VIPs            {}\n", fmt::join(texts(settings.vips), " "));
  text += fmt::format("  load balancers  {}\n", fmt::join(texts(settings.lbs), " "));
  text += fmt::format("  local           {}\n", fmt::join(texts(settings.locals), " "));
  text += fmt::format("  {:<18} {:>14}\n", "outcome", "packets");
  for (std::size_t i = 0; i < counters.size(); ++i)
    text += fmt::format("  {:<18} {:>14}  {}\n", outcomes().at(i).name, counters.at(i),
                        outcomes().at(i).sentence);
  return text;
}

}  // namespace

std::string text_report(const std::vector<Attachment>& attachments) {
  std::string text;
  for (const auto& attachment : attachments) {
    if (!text.empty()) text += '\n';
    text += text_report(attachment);
  }
  return text;
}

std::string json_report(const std::vector<Attachment>& attachments) {
  auto interfaces = nlohmann::ordered_json::array();
  for (const auto& attachment : attachments) {
    const auto& [settings, counters] = attachment.state;
    nlohmann::ordered_json entry;
    entry["interface"] = attachment.interface;
    entry["index"] = attachment.interface_index;
    entry["running"] = attachment.running;
    entry["mode"] = nullptr;
    if (attachment.running) entry["mode"] = name_of(attachment.mode);
    entry["program_id"] = attachment.program_id;
    entry["vips"] = texts(settings.vips);
    entry["lbs"] = texts(settings.lbs);
    entry["locals"] = texts(settings.locals);
    for (std::size_t i = 0; i < counters.size(); ++i)
      entry["counters"][std::string(outcomes().at(i).name)] = counters.at(i);
    interfaces.push_back(std::move(entry));
  }
  return nlohmann::ordered_json{{"interfaces", std::move(interfaces)}}.dump() + "\n";
}

}  // namespace holdfast::agent

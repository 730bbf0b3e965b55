// SPDX-License-Identifier: Apache-2.0
#include "ctrl/command/flow_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ctrl/reconcile/select.h"

namespace holdfast {
namespace {

std::optional<std::chrono::milliseconds> duration_at(const Json& arguments, std::string_view name) {
  return parse_duration(text_at(arguments, name));
}

/// The text at a number's place, which may be none yet.
template <class Text, class Number>
Text& place_for(std::vector<Text>& texts, Number number) {
  if (index_of(number) >= texts.size()) texts.resize(index_of(number) + 1);
  return texts[index_of(number)];
}

template <class Text, class Number>
std::string name_at(const std::vector<Text>& texts, Number number, std::string_view otherwise) {
  const auto i = index_of(number);
  return std::string(i < texts.size() && !texts[i].empty() ? std::string_view(texts[i])
                                                           : otherwise);
}

}  // namespace

std::vector<Argument> filter_arguments(std::vector<Argument> more) {
  std::vector<Argument> arguments{
      {.kind = Argument::Kind::text,
       .name = "service",
       .value = "SERVICE",
       .help = "Only flows of this service"},
      {.kind = Argument::Kind::text,
       .name = "backend",
       .value = "BACKEND",
       .help = "Only flows on POOL/BACKEND, or on BACKEND in all pools; by name or address"},
      {.kind = Argument::Kind::text,
       .name = "state",
       .value = "STATE",
       .help = "Only embryonic, established (not yet proven), proven or closing ones, or active "
               "ones: established and proven"},
      {.kind = Argument::Kind::duration,
       .name = "idle-over",
       .value = "DURATION",
       .help = "Only flows without a packet for longer than this"},
      {.kind = Argument::Kind::duration,
       .name = "age-over",
       .value = "DURATION",
       .help = "Only flows that were first seen longer ago than this"}};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

Result<FlowFilter> read_filter(const FlowWorld& world, const Json& arguments) {
  FlowFilter filter;
  filter.idle_over = duration_at(arguments, "idle-over");
  filter.age_over = duration_at(arguments, "age-over");
  if (const auto name = text_at(arguments, "service"); !name.empty()) {
    const auto service = select_service(world.services, name);
    if (!service) return tl::unexpected<Error>(service.error());
    filter.service = world.service_numbers.find((*service)->name).value_or(kNoService);
  }
  if (const auto name = text_at(arguments, "backend"); !name.empty()) {
    const auto selected = select_backends(world.pools, name);
    if (!selected) return tl::unexpected<Error>(selected.error());
    for (const auto& one : *selected) filter.backends.push_back(one.backend->number);
    std::sort(filter.backends.begin(), filter.backends.end());
  }
  if (const auto name = text_at(arguments, "state"); !name.empty()) {
    filter.states = parse_flow_states(name);
    if (!filter.states)
      return fail("--state is embryonic, established, proven, closing or active", {}, "usage");
  }
  return filter;
}

std::string tag_text(std::uint64_t tag) { return fmt::format("{:011x}", tag); }

FlowNames::FlowNames(const FlowWorld& world) {
  for (const auto& service : world.services)
    if (const auto number = world.service_numbers.find(service.name))
      place_for(services_, *number) = service.name;
  for (const auto& pool : world.pools)
    for (const auto& backend : pool.backends)
      if (backend.number != kNoBackend)
        place_for(backends_, backend.number) = pool.name + "/" + backend.name;
}

std::string FlowNames::service(ServiceNumber number) const {
  return name_at(services_, number, "a removed service");
}

std::string FlowNames::backend(BackendNumber number) const {
  return name_at(backends_, number, "a removed backend");
}

}  // namespace holdfast

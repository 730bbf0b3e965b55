// SPDX-License-Identifier: Apache-2.0
#include "lib/model/flow_filter.h"

#include <algorithm>

namespace holdfast {
namespace {

bool is_one_of(FlowStates states, const FlowRow& row) {
  switch (states) {
    case FlowStates::embryonic:
      return row.state == FlowRow::State::embryonic;
    case FlowStates::established:
      return row.state == FlowRow::State::established;
    case FlowStates::proven:
      return row.state == FlowRow::State::proven;
    case FlowStates::closing:
      return row.state == FlowRow::State::closing;
    case FlowStates::active:
      return row.active();
  }
  return false;
}

}  // namespace

std::string_view name_of(FlowRow::State state) {
  switch (state) {
    case FlowRow::State::embryonic:
      return "embryonic";
    case FlowRow::State::established:
      return "established";
    case FlowRow::State::proven:
      return "proven";
    case FlowRow::State::closing:
      return "closing";
  }
  return "?";
}

std::optional<FlowStates> parse_flow_states(std::string_view text) {
  if (text == "embryonic") return FlowStates::embryonic;
  if (text == "established") return FlowStates::established;
  if (text == "proven") return FlowStates::proven;
  if (text == "closing") return FlowStates::closing;
  if (text == "active") return FlowStates::active;
  return std::nullopt;
}

bool FlowFilter::matches(const FlowRow& row) const {
  if (service && row.service != *service) return false;
  if (!backends.empty() && !std::binary_search(backends.begin(), backends.end(), row.backend))
    return false;
  if (states && !is_one_of(*states, row)) return false;
  return !(idle_over && row.idle <= *idle_over) && !(age_over && row.age <= *age_over);
}

FlowTally& FlowTally::operator+=(const FlowTally& other) {
  active += other.active;
  idle += other.idle;
  embryonic += other.embryonic;
  closing += other.closing;
  return *this;
}

void FlowCensus::add(const FlowRow& row) {
  FlowTally& tally =
      groups_[static_cast<std::uint32_t>(index_of(row.service) << 16 | index_of(row.backend))];
  switch (row.state) {
    case FlowRow::State::embryonic:
      ++tally.embryonic;
      break;
    case FlowRow::State::established:
    case FlowRow::State::proven:
      ++(silent_ && row.idle > *silent_ ? tally.idle : tally.active);
      break;
    case FlowRow::State::closing:
      ++tally.closing;
      break;
  }
}

std::vector<FlowCensus::Group> FlowCensus::largest(std::size_t most) const {
  std::vector<Group> groups;
  groups.reserve(groups_.size());
  for (const auto& [key, flows] : groups_) {
    groups.push_back({.service = static_cast<ServiceNumber>(key >> 16),
                      .backend = static_cast<BackendNumber>(key & 0xffff),
                      .flows = flows});
  }
  if (groups.size() > most) {
    std::nth_element(groups.begin(), groups.begin() + static_cast<std::ptrdiff_t>(most),
                     groups.end(),
                     [](const Group& a, const Group& b) { return a.flows.sum() > b.flows.sum(); });
    groups.resize(most);
  }
  std::sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
    return a.service != b.service ? a.service < b.service : a.backend < b.backend;
  });
  return groups;
}

FlowTally FlowCensus::total() const {
  FlowTally total;
  for (const auto& [key, flows] : groups_) total += flows;
  return total;
}

}  // namespace holdfast

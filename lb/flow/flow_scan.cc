// SPDX-License-Identifier: Apache-2.0
#include "lb/flow/flow_scan.h"

#include <algorithm>

#include "lb/flow/flow_life.h"

namespace holdfast {
namespace {

/// Workers stamp by their own reading of the clock and go on while we read, so that a stamp may be
/// ahead of `now`: then the time since is a little less than zero, and as such it is the highest
/// values of its field. No true one comes near: idle times end at 5 days of 12, ages at 145 of 194.
constexpr FlowTime kAhead = std::chrono::hours{24};

FlowTime since(FlowTime time, unsigned bits) {
  const FlowTime wraps{std::int64_t{1} << bits};
  return time >= wraps - kAhead ? FlowTime{0} : time;
}

std::chrono::milliseconds as_duration(FlowTime time) { return time; }

FlowRow::State state_of(FlowLife life) {
  switch (life.state) {
    case FlowState::free:
    case FlowState::embryonic:
      return FlowRow::State::embryonic;
    case FlowState::established:
      return life.proven >= FlowLife::kProven ? FlowRow::State::proven
                                              : FlowRow::State::established;
    case FlowState::closing_fin:
    case FlowState::closing_rst:
    case FlowState::closing_embryonic:
      return FlowRow::State::closing;
  }
  return FlowRow::State::embryonic;
}

FlowRow row_of(unsigned worker, const FlowEntry& entry, FlowTime now) {
  return {.tag = entry.tag(),
          .age = as_duration(since(entry.age(now), FlowEntry::kFirstSeenBits)),
          .idle = as_duration(since(entry.idle(now), FlowEntry::kLastSeenBits)),
          .worker = worker,
          .service = entry.service(),
          .backend = entry.backend(),
          .state = state_of(entry.life()),
          .adopted = entry.adopted(),
          .stream = was_established(entry.life()),
          .reset = entry.life().state == FlowState::closing_rst};
}

}  // namespace

std::optional<FlowPosition> scan_flows(std::span<const FlowTable* const> tables, FlowTime now,
                                       FlowPosition from, std::uint64_t places,
                                       const FlowVisitor& visit) {
  FlowPosition at = from;
  for (bool enough = false; at.worker < tables.size();) {
    const FlowTable& table = *tables[at.worker];
    if (at.place >= table.capacity()) {
      at = {.worker = at.worker + 1, .place = 0};
      continue;
    }
    if (enough || places == 0) return at;
    const FlowEntry entry = table.read(at.place);
    if (!entry.is_free()) enough = !visit(row_of(at.worker, entry, now));
    ++at.place;
    --places;
  }
  return std::nullopt;
}

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// How many packets a second were dropped lately, by reason, from totals that are read now and then.
// Pure; owned by ControlPlane.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>

#include "lib/base/instant.h"
#include "lib/model/drop_reason.h"

namespace holdfast {

class DropRates {
 public:
  using Totals = std::array<std::uint64_t, kDropReasonCount>;
  /// Rates are averages over about this long.
  static constexpr std::chrono::seconds kWindow{10};

  void add(Instant now, const Totals& totals);
  /// Packets a second since the oldest reading in the window; 0 before there are two readings.
  [[nodiscard]] double rate(DropReason reason) const;
  /// What the rates cover.
  [[nodiscard]] std::chrono::duration<double> covered() const;

 private:
  struct Reading {
    Instant at;
    Totals totals;
  };
  std::deque<Reading> readings_;  // oldest first
};

}  // namespace holdfast

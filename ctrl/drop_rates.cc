// SPDX-License-Identifier: Apache-2.0
#include "ctrl/drop_rates.h"

namespace holdfast {

void DropRates::add(Instant now, const Totals& totals) {
  if (!readings_.empty() && now <= readings_.back().at) return;
  readings_.push_back({now, totals});
  // The oldest reading stays until the next one alone covers the window.
  while (readings_.size() > 2 && now - readings_[1].at >= kWindow) readings_.pop_front();
}

std::chrono::duration<double> DropRates::covered() const {
  if (readings_.size() < 2) return std::chrono::duration<double>::zero();
  return readings_.back().at - readings_.front().at;
}

double DropRates::rate(DropReason reason) const {
  const auto seconds = covered().count();
  if (seconds <= 0) return 0;
  const auto i = static_cast<std::size_t>(reason);
  const auto before = readings_.front().totals[i];
  const auto after = readings_.back().totals[i];
  return after > before ? static_cast<double>(after - before) / seconds : 0;
}

}  // namespace holdfast

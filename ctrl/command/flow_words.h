// SPDX-License-Identifier: Apache-2.0
// What the commands about flows share: how operators say which flows they mean, and the names of
// what flow-table entries hold as numbers. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ctrl/command/command.h"
#include "ctrl/reconcile/numbers.h"
#include "ctrl/reconcile/reconcile.h"
#include "lib/base/result.h"
#include "lib/config/config.h"
#include "lib/model/flow_filter.h"
#include "lib/protocol/json.h"

namespace holdfast {

/// What there is now. Valid until the control thread's next turn.
struct FlowWorld {
  const std::vector<ServiceConfig>& services;
  const ServiceNumbers& service_numbers;
  const std::vector<PoolReport>& pools;
};

/// --service, --backend, --state, --idle-over and --age-over, and behind them `more`.
[[nodiscard]] std::vector<Argument> filter_arguments(std::vector<Argument> more);

/// Refuses names that are not there.
[[nodiscard]] Result<FlowFilter> read_filter(const FlowWorld& world, const Json& arguments);

/// A flow's tag as `flows list` and `lookup` show it: 11 hexadecimal digits.
[[nodiscard]] std::string tag_text(std::uint64_t tag);

class FlowNames {
 public:
  explicit FlowNames(const FlowWorld& world);

  [[nodiscard]] std::string service(ServiceNumber number) const;
  /// "POOL/BACKEND"
  [[nodiscard]] std::string backend(BackendNumber number) const;

 private:
  std::vector<std::string_view> services_{};  // by ServiceNumber; empty: removed
  std::vector<std::string> backends_{};       // by BackendNumber; empty: removed
};

}  // namespace holdfast

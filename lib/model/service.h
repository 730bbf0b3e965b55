// SPDX-License-Identifier: Apache-2.0
// Services and pools as the workers see them. Values; built by ctrl/reconcile, read by lb.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "lib/model/numbers.h"
#include "lib/net/headers.h"

namespace holdfast {

/// How long an entry of the flow table lives without a packet (embryonic: since the last SYN).
struct FlowTimeouts {
  std::chrono::seconds embryonic{20};
  std::chrono::seconds established{2 * 3600 + 5 * 60};  // RFC 5382 REQ-5: at least 2 h 4 min
  std::chrono::seconds closing{60};
  std::chrono::seconds udp{120};

  friend bool operator==(const FlowTimeouts&, const FlowTimeouts&) = default;
};

/// The longest life any timeout may ask for: the flow table's clock must not wrap past it.
inline constexpr std::chrono::hours kMaxFlowTimeout{5 * 24};

struct Service {
  bool present = false;  // false: a hole in the numbering
  IpProtocol protocol = IpProtocol::tcp;
  PoolNumber pool{};
  FlowTimeouts timeouts{};
  double max_share = 1.0;         // of a worker's table, (0, 1]: all its entries
  double embryonic_share = 0.25;  // of a worker's table, (0, 1]: its embryonic entries
  bool udp_repick_on_drain = false;
  bool stateless = false;       // UDP: the effective table alone decides, nothing is stored
  std::uint16_t mss_clamp = 0;  // TCP: the largest MSS that a backend may hear of; 0: any
};

/// Slot -> owner. Shared between snapshots while nothing about the pool changed.
using SlotTable = std::vector<BackendNumber>;

struct Pool {
  bool present = false;
  std::shared_ptr<const SlotTable> base;       // over all configured backends of weight > 0
  std::shared_ptr<const SlotTable> effective;  // what a pick uses; null or empty: no backend at all
};

}  // namespace holdfast

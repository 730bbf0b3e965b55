// SPDX-License-Identifier: Apache-2.0
// What the kernel has said so far about links and neighbours. Pure; owned by NextHopWatch, control
// thread only.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>

#include "ctrl/netlink/messages.h"

namespace holdfast::netlink {

/// A neighbour is one address on one link.
struct NeighbourKey {
  std::uint32_t link = 0;
  IpAddress address{};

  friend auto operator<=>(const NeighbourKey&, const NeighbourKey&) = default;
};

class KernelView {
 public:
  void take(const Link& link);
  void take(const Neighbour& neighbour);

  /// Null: no such link.
  [[nodiscard]] const Link* link(std::uint32_t index) const;
  /// Null: the kernel has no entry.
  [[nodiscard]] const Neighbour* neighbour(const NeighbourKey& key) const;
  [[nodiscard]] const std::unordered_map<std::uint32_t, Link>& links() const { return links_; }

 private:
  std::unordered_map<std::uint32_t, Link> links_;
  std::map<NeighbourKey, Neighbour> neighbours_;
};

}  // namespace holdfast::netlink

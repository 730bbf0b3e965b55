// SPDX-License-Identifier: Apache-2.0
// Keeps the next hops of all backends as the kernel knows them: reads routes, links and neighbours,
// follows the kernel's events, reads everything anew each 10 s or when events were lost, and has
// neighbours resolved before traffic needs them (a packet never does). Owned by ControlPlane,
// control thread only.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "ctrl/loop/loop.h"
#include "ctrl/netlink/kernel_view.h"
#include "ctrl/netlink/resolve.h"
#include "ctrl/netlink/socket.h"
#include "ctrl/reconcile/next_hops.h"
#include "lib/base/result.h"

namespace holdfast {

class NextHopWatch {
 public:
  static constexpr std::chrono::seconds kReadAnew{10};
  static constexpr std::chrono::milliseconds kGather{20};  // events within this are one change
  static constexpr std::chrono::seconds kAskAgain{2};      // the same silent neighbour
  static constexpr std::chrono::seconds kTick{1};

  using Routes = std::map<IpAddress, ResolvedRoute>;

  /// Reads everything once before it returns. `changed` is called from the loop, later, whenever
  /// routes() has become different.
  [[nodiscard]] static Result<std::unique_ptr<NextHopWatch>> start(
      Loop& loop, std::vector<PortDescription> ports, std::set<IpAddress> backends,
      std::function<void()> changed);
  ~NextHopWatch();
  NextHopWatch(const NextHopWatch&) = delete;
  NextHopWatch& operator=(const NextHopWatch&) = delete;

  /// Every backend has an entry: with next hops, or with a problem.
  [[nodiscard]] const Routes& routes() const { return routes_; }

 private:
  NextHopWatch(Loop& loop, std::vector<PortDescription> ports, std::set<IpAddress> backends,
               std::function<void()> changed, netlink::Socket events, netlink::Socket asking);

  void on_events();
  void take(const netlink::Message& message);
  void tick();
  void refresh_soon();
  void refresh();
  void read_links_and_neighbours();
  void read_routes();
  netlink::RouteAnswer read_route(const IpAddress& backend, std::uint32_t domain);
  netlink::Resolution resolve(const IpAddress& backend) const;
  void ask_neighbours();

  Loop& loop_;
  std::vector<PortDescription> ports_;
  std::set<IpAddress> backends_;
  std::function<void()> changed_;
  netlink::Socket events_;
  netlink::Socket asking_;
  std::uint32_t sequence_ = 0;

  netlink::KernelView view_;
  std::map<IpAddress, std::vector<netlink::RouteAnswer>> answers_;  // by routing domain
  Routes routes_;
  std::map<netlink::NeighbourKey, Instant> neighbours_;  // that routes rest on; when last asked
  bool view_stale_ = true;
  bool routes_stale_ = true;
  bool told_no_permission_ = false;
  Instant last_full_read_{};
  Loop::TimerId refresh_timer_ = 0;
  Loop::TimerId tick_timer_ = 0;
};

}  // namespace holdfast

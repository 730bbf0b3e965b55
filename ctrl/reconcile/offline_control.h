// SPDX-License-Identifier: Apache-2.0
// The control plane of a load balancer that nobody watches: snapshots from a configuration by the
// same reconcile() as the daemon's, with assumptions where the daemon would ask the kernel or a
// backend. For holdfast-replay. Pure: time is an argument; one owner.
//
// Assumed is that every backend answers its checks, but for those that are said to be down, and
// that one without a `next_hop` is reached by the first port, over a link that carries whatever
// client_mtu promises, from the addresses below.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ctrl/reconcile/reconcile.h"
#include "ctrl/reconcile/select.h"
#include "lib/base/result.h"
#include "lib/config/config.h"

namespace holdfast {

/// Locally administered, so that they are nobody's: of the first port, with the port's number in
/// the last byte, and of the router behind it.
inline constexpr MacAddress kAssumedPortMac{{0x02, 0, 0, 0, 0, 0x01}};
inline constexpr MacAddress kAssumedRouterMac{{0x02, 0, 0, 0, 0x01, 0x01}};
/// Sources of tunnels that neither the configuration nor an interface names; of the ranges for
/// benchmarks (RFC 2544, RFC 5180), which no network routes.
inline constexpr std::string_view kAssumedSourceV4 = "198.18.0.1";
inline constexpr std::string_view kAssumedSourceV6 = "2001:2::1";

class OfflineControl {
 public:
  /// Backends by POOL/BACKEND, or BACKEND for all pools that have it.
  struct Assumptions {
    std::vector<std::string> drained{};
    std::vector<std::string> down{};  // for longer than down_grace
  };

  /// The earliest `now` that start() takes: a backend that is down was so for a while before.
  static constexpr Instant kEarliest = std::chrono::hours(48);

  /// Refuses names that the configuration does not have.
  [[nodiscard]] static Result<OfflineControl> start(Config config, HashSeed seed,
                                                    const Assumptions& assumptions, Instant now);

  /// Takes another configuration, as an apply does: flows and drains stay where the membership
  /// does, and who is down stays so.
  [[nodiscard]] Result<void> apply(Config config, Instant now);

  /// Whether a new snapshot is due: after start() and apply(), and when a deadline has passed.
  [[nodiscard]] bool is_due(Instant now) const;
  [[nodiscard]] std::unique_ptr<const Snapshot> make_snapshot(Instant now);

  /// Of all configurations so far; "" and unspecified when there was none with that number.
  [[nodiscard]] const std::string& service_name(ServiceNumber number) const;
  [[nodiscard]] IpAddress backend_address(BackendNumber number) const;

 private:
  OfflineControl(Config config, HashSeed seed) : config_(std::move(config)), seed_(seed) {}

  [[nodiscard]] Result<void> follow(Instant now);
  void assume_ports_and_routes();
  void assume_health(Instant now);
  void remember_names(const Snapshot& snapshot);

  Config config_;
  HashSeed seed_;
  RuntimeState state_{};
  ReconcileMemory memory_{};
  Deadline next_{};
  bool changed_ = true;
  std::vector<MembershipKey> down_{};
  std::map<ServiceNumber, std::string> services_{};
  std::map<BackendNumber, IpAddress> backends_{};
};

}  // namespace holdfast

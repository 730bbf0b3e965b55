// SPDX-License-Identifier: Apache-2.0
// A made-up site of any size: the text of its configuration, and what becomes of it on its way to
// the snapshot. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ctrl/reconcile/reconcile.h"

namespace holdfast::bench {

struct SiteSize {
  unsigned services = 1;  // each with a VIP of its own, TCP port 80
  unsigned pools = 1;     // services take them in turn
  unsigned backends = 1;  // of all pools together, a multiple of `pools`

  /// "10000 services, 1000 pools, 10000 backends".
  [[nodiscard]] std::string text() const;
};

/// As an operator's tool would write it. The backends' next hops are fixed, so that no kernel is
/// asked for routes.
[[nodiscard]] std::string site_text(const SiteSize& size);

/// The VIPs of a site, in the order of its services.
[[nodiscard]] std::vector<IpAddress> site_vips(unsigned services);

/// What the daemon does with a configuration, step by step. Throws std::runtime_error when a step
/// refuses.
class Site {
 public:
  void parse(const std::string& text);
  void follow();
  /// Keeps what it returns for the next one.
  void reconcile();
  /// Starts a drain of the first backend, or ends it.
  void drain_first(bool drain);

  [[nodiscard]] const Snapshot& snapshot() const { return *result_.snapshot; }
  [[nodiscard]] std::unique_ptr<const Snapshot> take_snapshot() {
    return std::move(result_.snapshot);
  }

 private:
  Config config_;
  RuntimeState state_{};
  Reconciled result_{};
  Instant now_{std::chrono::seconds{1}};
};

}  // namespace holdfast::bench

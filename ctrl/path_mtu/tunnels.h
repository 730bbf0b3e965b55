// SPDX-License-Identifier: Apache-2.0
// The tunnels that this host sends by, to hold a router's quote of an outer header against: what no
// tunnel of ours can have sent is somebody else's, or made up. Pure; owned by the control thread,
// made anew when a snapshot is published.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "ctrl/reconcile/reconcile.h"
#include "lib/config/config.h"
#include "lib/net/outer_quote.h"

namespace holdfast {

class Tunnels {
 public:
  struct Tunnel {
    std::string pool{};
    Encapsulation encapsulation = Encapsulation::ipip;
    IpAddress source{};
    std::optional<Prefix> sources{};  // instead of `source`
    std::uint32_t minimum_mtu = 0;    // a path MTU below it is not believed: BackendReport has it
    std::uint32_t way_mtu = 0;        // one above it changes nothing: the same
  };

  /// `reports`: what reconcile made of `config`.
  Tunnels(const Config& config, const std::vector<PoolReport>& reports);

  /// All tunnels to the quoted destination, if one of them can have sent the quoted packet: source,
  /// protocol and (with GUE) port are its own. Else none. The way is one whatever the tunnel is.
  [[nodiscard]] std::vector<const Tunnel*> of(const OuterQuote& quote) const;

 private:
  std::unordered_multimap<IpAddress, Tunnel> by_backend_{};
};

}  // namespace holdfast

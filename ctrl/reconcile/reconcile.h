// SPDX-License-Identifier: Apache-2.0
// What is wanted (Config) and what is (RuntimeState) become the snapshot that workers read, and the
// report that operators read. Pure: no I/O, no clock; a table of 655373 slots takes tens of
// milliseconds, so large ones are built on the helper thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ctrl/reconcile/backend_path.h"
#include "ctrl/reconcile/pool_tables.h"
#include "ctrl/reconcile/runtime.h"
#include "lib/model/snapshot.h"

namespace holdfast {

struct BackendReport {
  std::string name{};
  IpAddress address{};
  BackendNumber number = kNoBackend;
  std::uint32_t weight = 0;             // in force
  std::uint32_t configured_weight = 0;  // differs: it was set at run time
  BackendState state = BackendState::unchecked;
  std::string reason{};           // one clause
  std::string warning{};          // the longest packets of clients do not fit; empty: all is well
  std::uint32_t minimum_mtu = 0;  // that its way needs for IPv6 services; 0: none uses the pool
  std::uint32_t way_mtu = 0;      // of its widest next hop, as lowered by `path_mtu`; 0: no way
  IpAddress tunnel_source{};      // the outer source of what is sent to it; unspecified: none
  std::optional<PathMtu> path_mtu{};  // what a router said, where it is less than the next hop's
  Instant since{};                    // when it came into this state
  bool keeps_tcp = false;             // as in Backend
  bool keeps_udp = false;
  bool awaits_check = false;
  Deadline drain_deadline{};  // as the operator gave it; nullopt: none, or not draining
  std::uint32_t base_slots = 0;
  std::uint32_t slots = 0;  // of the effective table
};

/// Why the effective table is what it is.
enum class PoolPlacement : std::uint8_t {
  eligible,       // new flows go to the eligible backends
  draining_only,  // none is eligible, so new flows go to the draining ones
  none,           // no backend at all: new flows are dropped
};

struct PoolReport {
  std::string name{};
  PoolPlacement placement = PoolPlacement::none;
  std::uint32_t table_size = 0;
  std::uint64_t base_digest = 0;  // equal on every load balancer with this configuration
  std::uint64_t effective_digest = 0;
  std::vector<BackendReport> backends{};  // in the order of the configuration
};

/// What one reconcile must know of the one before: tables to share, next hops last known, and since
/// when each backend is in its state. Opaque to others.
struct ReconcileMemory {
  struct StateSince {
    BackendState state = BackendState::unchecked;
    Instant since{};
  };

  std::uint64_t generation = 0;
  std::map<std::string, std::shared_ptr<const PoolTables>> tables{};  // by pool
  std::map<MembershipKey, ResolvedRoute> last_known{};                // routes that had next hops
  std::map<MembershipKey, StateSince> states{};
};

struct Reconciled {
  std::unique_ptr<const Snapshot> snapshot{};
  std::vector<PoolReport> pools{};  // in the order of the configuration
  Deadline next_deadline{};         // run again then, even if nothing happens
  ReconcileMemory memory{};         // for the next call
};

/// Requires: follow_config(state, config) succeeded, so every membership and service has a number.
[[nodiscard]] Reconciled reconcile(const Config& config, HashSeed seed, const RuntimeState& state,
                                   const ReconcileMemory& previous, Instant now);

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// The groups of figures that the benchmark program can take; each is a file of its own.
#pragma once

#include "bench/harness.h"

namespace holdfast::bench {

struct Options {
  bool quick = false;  // smaller and fewer: all groups together within 90 s
  /// Rounds of a race.
  [[nodiscard]] RaceOptions rounds() const { return {.rounds = quick ? 7U : 11U}; }
};

/// Fill of a flow table against newcomers turned away; sweep bursts; the slowest inserts.
void run_fill(Report& report, const Options& options);
/// Floods over a table that is full of flows that carry data: none may move.
void run_floods(Report& report, const Options& options);

/// Parse to encapsulated, beside the bare loop that no load balancer can do without.
void run_pipeline(Report& report, const Options& options);

/// Building Maglev tables beside the plain algorithm, what moves, how even they are.
void run_maglev(Report& report, const Options& options);

/// The flow table's lookup and memory beside rte_hash and absl::flat_hash_map.
void run_table(Report& report, const Options& options);
/// Large sites: loading them, and forwarding for them.
void run_scale(Report& report, const Options& options);
/// The pipeline while snapshots are published, and while none is.
void run_snapshot(Report& report, const Options& options);

}  // namespace holdfast::bench

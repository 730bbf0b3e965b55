// SPDX-License-Identifier: Apache-2.0
// Sees each burst of a worker when all of its packets have their verdicts, and before any of them
// leaves: who wants to know what became of each packet, and why (tests, replay), is one. The daemon
// has none. Called by the worker.
#pragma once

namespace holdfast {

struct Burst;

class BurstWitness {
 public:
  virtual ~BurstWitness() = default;
  /// A packet that a port refuses afterwards, or that finds no way to the kernel, is dropped after
  /// all.
  virtual void see(const Burst& burst) noexcept = 0;
};

}  // namespace holdfast

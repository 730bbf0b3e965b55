// SPDX-License-Identifier: Apache-2.0
// DPDK's environment layer as an object: started once in a process by the control thread, cleaned
// up when it ends. What DPDK logs goes into our log at debug level.
#pragma once

#include <string>
#include <vector>

#include "lb/port/port_plan.h"
#include "lib/base/result.h"

namespace holdfast {

/// This machine, as far as EAL flags depend on it.
[[nodiscard]] EalSurroundings read_surroundings();

class Eal {
 public:
  /// Error: the sentence ends with what DPDK itself said.
  [[nodiscard]] static Result<Eal> start(const std::vector<std::string>& arguments);
  Eal(Eal&& other) noexcept;
  Eal& operator=(Eal&& other) noexcept;
  /// Requires: no worker runs and all devices are closed.
  ~Eal();

 private:
  Eal() = default;
  bool running_ = false;
};

/// "REASON" for sentences of the kind "cannot ...: REASON": the last error that DPDK or one of its
/// drivers logged since the last call, else the text of `error` (a positive errno).
[[nodiscard]] std::string dpdk_reason(int error);

/// While one lives, what is printed on standard error is lost, unless the log shows debug messages:
/// DPDK and the libraries under it print there beside logging. Wrap single calls into them.
class QuietStderr {
 public:
  QuietStderr();
  QuietStderr(const QuietStderr&) = delete;
  QuietStderr& operator=(const QuietStderr&) = delete;
  ~QuietStderr();

 private:
  int saved_ = -1;
};

}  // namespace holdfast

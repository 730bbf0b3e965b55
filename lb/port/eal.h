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

/// Wraps calls into DPDK that may fail: collects why they did. While one lives, what is printed on
/// standard error is lost unless the log shows debug messages, because DPDK and the libraries under
/// it print there beside logging. Control thread; one at a time.
class DpdkCall {
 public:
  DpdkCall();
  DpdkCall(const DpdkCall&) = delete;
  DpdkCall& operator=(const DpdkCall&) = delete;
  ~DpdkCall();

  /// For sentences of the kind "cannot ...: REASON": the first error that DPDK or a driver logged
  /// since this began (later ones only repeat that something failed), else the text of `error`, an
  /// errno of either sign.
  [[nodiscard]] std::string reason(int error) const;

 private:
  int saved_stderr_ = -1;
};

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// What is on an interface before we come: its XDP program, and whether another live holdfastd
// serves it. Control thread, at start.
#pragma once

#include <cstdint>
#include <string>

#include "lb/steering/steering_shared.h"
#include "lib/base/result.h"
#include "lib/base/unique_fd.h"

namespace holdfast {

struct AttachedProgram {
  std::uint32_t id = 0;  // 0: none, and all else is empty
  std::string name;
  bool is_ours = false;    // the steering program of this or an earlier holdfastd
  unsigned mode_flag = 0;  // XDP_FLAGS_DRV_MODE or XDP_FLAGS_SKB_MODE
  UniqueFd program;
  UniqueFd counters;  // its map of them; invalid unless it is ours
};

[[nodiscard]] Result<AttachedProgram> attached_program(unsigned interface_index);

/// What all CPUs have counted in the map of a steering program; zeros when it can not be read, or
/// is another version's.
[[nodiscard]] steering_counters sum_counters(int map);

/// Claims the interface for this process; the claim ends with the descriptor, also when the process
/// is killed. Error: another holdfastd has it.
[[nodiscard]] Result<UniqueFd> claim_interface(const std::string& interface,
                                               unsigned interface_index);

}  // namespace holdfast

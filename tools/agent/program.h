// SPDX-License-Identifier: Apache-2.0
// The decapsulation program in the kernel: loading a new one with its settings, and reading
// settings and counters back from one that runs. Makes system calls; one thread.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "lib/base/result.h"
#include "lib/base/unique_fd.h"
#include "tools/agent/settings.h"

namespace holdfast::agent {

/// One of the ends that a packet can come to.
struct Outcome {
  std::string_view name;      // "decapsulated_4in4": the word in JSON and metrics
  std::string_view sentence;  // for operators
  bool dropped;
};

/// By the slot of their counter.
[[nodiscard]] const std::array<Outcome, OUTCOME_COUNT>& outcomes();

/// Packets by outcome, summed over all CPUs.
using Counters = std::array<std::uint64_t, OUTCOME_COUNT>;

/// What a program in the kernel was loaded with, and has counted since.
struct ProgramState {
  DecapSettings settings;
  Counters counters{};
};

/// The name that our programs have in the kernel (bpftool prog show).
inline constexpr std::string_view kProgramName = "holdfast_decap";

/// Loads a program that does `settings`; it is attached to nothing. Its counters are those of
/// `predecessor` (a program of ours, which may go on counting in them), or start at zero if that is
/// not valid. Errors: permission; a kernel that refuses it (with `verbose`, libbpf then prints
/// why).
[[nodiscard]] Result<UniqueFd> load_program(const DecapSettings& settings,
                                            const UniqueFd& predecessor, bool verbose);

/// Requires: `program` is one of ours.
[[nodiscard]] Result<ProgramState> read_program(const UniqueFd& program);

/// A descriptor of a program that is loaded somewhere in this kernel.
[[nodiscard]] Result<UniqueFd> open_program(std::uint32_t id);
/// As the kernel keeps it, at most 15 characters; empty if it has none.
[[nodiscard]] std::string program_name(const UniqueFd& program);

}  // namespace holdfast::agent

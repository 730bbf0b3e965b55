// SPDX-License-Identifier: Apache-2.0
// Decapsulation on an interface: starting, replacing, listing, ending it. The attachment is a
// bpf_link that a file in the pin folder keeps alive, so it does not need the agent to run. Makes
// system calls; one thread; the caller holds the PinFolder and with it the lock.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "tools/agent/bpffs.h"
#include "tools/agent/program.h"
#include "tools/agent/system.h"

namespace holdfast::agent {

/// Where in the kernel the program runs: in the NIC's driver, or after it, for every driver,
/// slower.
enum class XdpMode { native, generic };
[[nodiscard]] std::string_view name_of(XdpMode mode);

/// Native where the driver can, else generic.
enum class WantedMode { automatic, native, generic };

struct AttachRequest {
  Interface interface;
  DecapSettings settings;  // locals not empty
  WantedMode mode = WantedMode::automatic;
  bool verbose = false;
};

struct Attached {
  XdpMode mode = XdpMode::native;
  bool replaced = false;         // another program of ours ran before, up to the same instant
  std::string native_refusal{};  // why the driver would not, if generic was only the second choice
};

/// Starts decapsulation, or replaces its settings and program in one step, without a moment in
/// between and with its counters kept. Errors: somebody else's XDP program on the interface; a mode
/// that the driver cannot do, or that differs from the running one; permission.
[[nodiscard]] Result<Attached> attach(const PinFolder& folder, const AttachRequest& request);

/// One entry of the pin folder.
struct Attachment {
  std::string interface;    // its name now; the pinned name if it is not in this network namespace
  std::string pinned_name;  // its name when it was attached
  bool running = false;     // false: the interface is gone, or in another network namespace
  int interface_index = 0;  // 0: the interface is gone
  XdpMode mode = XdpMode::native;  // if running
  std::uint32_t program_id = 0;
  ProgramState state{};
};

/// All entries, by pinned name.
[[nodiscard]] Result<std::vector<Attachment>> list_attachments(const PinFolder& folder);

/// Ends decapsulation on that interface, or removes what is left of it if the interface is gone.
/// Error code "not_found": nothing is attached there.
[[nodiscard]] Result<void> detach(const PinFolder& folder, const std::string& interface);

}  // namespace holdfast::agent

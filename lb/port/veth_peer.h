// SPDX-License-Identifier: Apache-2.0
// The far end of a veth, and whether it leaves checksums for hardware to fill in. A veth hands
// packets on as they are: an AF_XDP socket then gets TCP and UDP with unfinished checksums, and
// whoever takes them out of a tunnel drops them. Control thread, at start.
#pragma once

#include <cstdint>
#include <string>

#include "lib/base/result.h"

namespace holdfast {

struct VethPeer {
  enum class Seen : std::uint8_t {
    no_veth,    // the interface is something else, and all else here is empty
    elsewhere,  // the far end is in a network namespace that can not be looked into from here
    looked_at,
  };
  Seen seen = Seen::no_veth;
  std::string name{};    // in its own network namespace
  std::string prefix{};  // for a command that shall work on it: "", "ip netns exec NAME "
  bool leaves_checksums = false;
};

/// Looks for the far end in this network namespace, those with a name and those of running
/// processes, but not for long.
[[nodiscard]] VethPeer find_veth_peer(unsigned interface_index);

/// Pure. Error: the far end of `interface` leaves checksums.
[[nodiscard]] Result<void> check_veth_peer(const std::string& interface, const VethPeer& peer);

}  // namespace holdfast

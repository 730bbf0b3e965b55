// SPDX-License-Identifier: Apache-2.0
// What the agent asks the system: may we, which interface is it, what went wrong. Makes system
// calls; one thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/net/address.h"

namespace holdfast::agent {

/// "`what`: `error` in words", with code "permission" where the kernel said that we may not.
/// `error` is an errno value, positive.
[[nodiscard]] tl::unexpected<Error> system_failure(std::string_view what, int error);

/// Refuses (code "permission") unless this process has CAP_NET_ADMIN, to attach, and CAP_SYS_ADMIN,
/// to reach the maps of a running program.
[[nodiscard]] Result<void> require_privileges();

/// A network interface of this network namespace.
struct Interface {
  std::string name;
  int index = 0;
  std::vector<IpAddress> addresses;
};

/// Errors: no such interface; one whose frames have no Ethernet header.
[[nodiscard]] Result<Interface> find_interface(const std::string& name);

/// The name of that interface in this network namespace, or empty.
[[nodiscard]] std::string interface_name(int index);

}  // namespace holdfast::agent

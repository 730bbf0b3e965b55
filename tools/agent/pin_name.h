// SPDX-License-Identifier: Apache-2.0
// Names of interfaces as names in a bpffs and back. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

namespace holdfast::agent {

/// An interface's name as a name in a bpffs, where no dot may be: "eth0.100" becomes "eth0%2e100".
[[nodiscard]] std::string to_pin_name(std::string_view interface);
[[nodiscard]] std::string from_pin_name(std::string_view pin_name);

}  // namespace holdfast::agent

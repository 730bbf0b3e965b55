// SPDX-License-Identifier: Apache-2.0
// The family of commands about announcing: bgp, vip list.
#pragma once

#include <string>

#include "ctrl/command/command.h"

namespace holdfast {

[[nodiscard]] Command bgp_command();
[[nodiscard]] Command vip_list_command();

/// The BGP part of `status`: null without [bgp].
[[nodiscard]] Json bgp_summary(const ControlPlane& control);
/// As one line without its end.
[[nodiscard]] std::string bgp_summary_text(const Json& summary);
/// One line for each of `result`'s "alarms".
[[nodiscard]] std::string alarm_lines(const Json& result);

}  // namespace holdfast

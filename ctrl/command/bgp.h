// SPDX-License-Identifier: Apache-2.0
// The family of commands about announcing: bgp, vip list.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ctrl/command/command.h"
#include "lib/config/config.h"

namespace holdfast {

[[nodiscard]] Command bgp_command();
[[nodiscard]] Command vip_list_command();

/// The names of each VIP's services, in the order of the file; they refer to `config`. Every
/// service is looked at once, so that thousands of VIPs do not hold the control loop.
[[nodiscard]] std::map<IpAddress, std::vector<std::string_view>> services_by_vip(
    const Config& config);

/// The BGP part of `status`: null without [bgp].
[[nodiscard]] Json bgp_summary(const ControlPlane& control);
/// As one line without its end.
[[nodiscard]] std::string bgp_summary_text(const Json& summary);
/// One line for each of `result`'s "alarms".
[[nodiscard]] std::string alarm_lines(const Json& result);

}  // namespace holdfast

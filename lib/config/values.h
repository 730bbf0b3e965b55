// SPDX-License-Identifier: Apache-2.0
// The small languages inside a config file's strings: ports, names, device addresses. Internal to
// lib/config. Pure; any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lib/config/config.h"

namespace holdfast::config {

/// "443", "8000-8999" or "any"; ports from 1 on.
[[nodiscard]] std::optional<PortRange> parse_ports(std::string_view text);

/// 1 to 64 letters, digits, '.', '_', '-' and ':': what a command line takes without quotes, and no
/// '/', which separates POOL/BACKEND.
[[nodiscard]] bool is_name(std::string_view text);

/// "0000:03:00.1" or "03:00.1".
[[nodiscard]] bool is_pci_address(std::string_view text);

/// What the kernel accepts as an interface's name: at most 15 bytes.
[[nodiscard]] bool is_interface_name(std::string_view text);

/// Why no host can have this address ("a multicast address"); empty when one can.
[[nodiscard]] std::string why_not_unicast(const IpAddress& address);

/// A BGP community (RFC 1997): "64512:100", both parts 0 to 65535, or the name of a well-known one:
/// "graceful-shutdown" (RFC 8326), "no-export", "no-advertise".
[[nodiscard]] std::optional<std::uint32_t> parse_community(std::string_view text);

/// "HOST:PORT": a name, an IPv4 address or an IPv6 address in brackets, and a port from 1 on.
[[nodiscard]] bool is_host_and_port(std::string_view text);

/// The shortest form that parse_duration reads back as `duration`.
[[nodiscard]] std::string duration_text(std::chrono::milliseconds duration);

}  // namespace holdfast::config

// SPDX-License-Identifier: Apache-2.0
// What the operator asked for, as plain values: the TOML schema of docs/configuration.md. Only keys
// whose feature exists are here; any other key in the file is an error. Pure; any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/flow/flow_key.h"
#include "lib/model/backend.h"
#include "lib/model/service.h"
#include "lib/model/service_table.h"
#include "lib/net/address.h"

namespace holdfast {

struct SiteConfig {
  std::string name;

  friend bool operator==(const SiteConfig&, const SiteConfig&) = default;
};

/// Exactly one of interface (AF_XDP on a kernel interface), vdev (a DPDK virtual device, with its
/// arguments) and pci (a PCI address that DPDK owns) is set.
struct PortConfig {
  std::string name;
  std::string interface;
  std::string vdev;
  std::string pci;
  std::uint16_t queues = 1;

  friend bool operator==(const PortConfig&, const PortConfig&) = default;
};

/// What every IPv4 host must be able to take (RFC 791 section 3.1).
inline constexpr std::uint16_t kMinClientMtu = 576;
/// The longest packet of clients that a tunnel with an IPv4 header takes over an AF_XDP port, whose
/// frames share a page with the headers before them; no other port takes much more.
inline constexpr std::uint16_t kMaxClientMtu = 3400;

struct DataplaneConfig {
  std::vector<PortConfig> ports;
  std::uint16_t workers = 1;
  std::uint32_t flow_capacity = 1'000'000;  // entries a worker
  std::string hash_seed_file;               // absolute after parsing
  bool busy_poll = false;                   // true: workers never sleep
  std::uint16_t client_mtu = 1500;          // IP bytes of the longest packet that clients send
  std::optional<IpAddress> tunnel_source_v4;
  std::optional<IpAddress> tunnel_source_v6;
  std::optional<Prefix> ipip_spread_v4;  // outer sources of IPIP, one a flow; empty: one for all
  std::optional<Prefix> ipip_spread_v6;
  std::uint32_t icmp_relay_rate = 1000;   // ICMP errors a second and worker, burst of one second
  std::uint32_t icmp_answer_rate = 1000;  // answers of each kind, a second and worker, same burst
  std::uint32_t sibling_lookup_rate =
      10000;  // look-ups in other workers' tables, a second and worker

  friend bool operator==(const DataplaneConfig&, const DataplaneConfig&) = default;
};

struct ControlConfig {
  std::string socket = "/run/holdfast/holdfast.sock";
  std::chrono::milliseconds linger{10'000};  // packets are forwarded this long after a withdrawal

  friend bool operator==(const ControlConfig&, const ControlConfig&) = default;
};

struct VipConfig {
  IpAddress address{};
  bool announce = true;                      // means something only with [bgp]
  std::vector<std::uint32_t> communities{};  // RFC 1997, high 16 bits the AS; sorted, no doubles
  std::optional<std::uint32_t> med{};
  std::uint8_t prepend = 0;          // own AS that many times more in the path, 0..10
  bool echo = true;                  // echo requests are answered
  bool reject_unknown_port = false;  // unknown_port = "drop" | "reject"

  friend bool operator==(const VipConfig&, const VipConfig&) = default;
};

/// Who configures the speaker. `external`: the operator; Holdfast only adds and removes paths.
enum class BgpMode : std::uint8_t { external };

struct BgpConfig {
  BgpMode mode = BgpMode::external;
  std::string gobgp = "127.0.0.1:50051";   // gRPC target: "HOST:PORT" or "unix:/PATH"
  std::optional<IpAddress> next_hop{};     // IPv4; set when an IPv4 VIP is announced
  std::optional<IpAddress> next_hop_v6{};  // the same of IPv6

  friend bool operator==(const BgpConfig&, const BgpConfig&) = default;
};

/// What every IPv4 host takes (RFC 9293 section 3.7.1), and what a frame of 9000 bytes has room
/// for.
inline constexpr std::uint16_t kMinMssClamp = 536;
inline constexpr std::uint16_t kMaxMssClamp = 8960;

struct ServiceConfig {
  std::string name;
  std::vector<IpAddress> vips;
  IpProtocol protocol = IpProtocol::tcp;  // tcp or udp
  PortRange ports;
  std::string pool;
  bool stateless = false;            // udp = "flow" | "stateless"
  bool udp_repick_on_drain = false;  // udp_on_drain = "keep" | "repick"
  std::optional<std::uint16_t> mss_clamp;
  double max_share = 1.0;
  double embryonic_share = 0.25;
  FlowTimeouts timeouts;

  friend bool operator==(const ServiceConfig&, const ServiceConfig&) = default;
};

/// For ports without a kernel interface; the others are resolved by netlink.
struct StaticNextHop {
  std::string port;
  MacAddress mac;
  std::uint16_t vlan = 0;  // 0: untagged
  std::uint16_t mtu = 1500;

  friend bool operator==(const StaticNextHop&, const StaticNextHop&) = default;
};

/// Of a backend, in the file and at run time.
inline constexpr std::uint32_t kMaxWeight = 1000;

struct BackendConfig {
  std::string name;  // default: the address
  IpAddress address;
  std::uint32_t weight = 100;  // 0..kMaxWeight
  std::optional<StaticNextHop> next_hop;

  friend bool operator==(const BackendConfig&, const BackendConfig&) = default;
};

struct PoolConfig {
  std::string name;
  std::uint32_t table_size = 65537;  // prime
  Encapsulation encapsulation = Encapsulation::ipip;
  std::optional<std::uint8_t> dscp;  // of the outer header, 0..63; empty: copied
  bool udp6_checksum = true;         // of GUE over IPv6
  std::string check;                 // empty: backends count as checked and up
  std::chrono::milliseconds down_grace{10'000};
  std::vector<BackendConfig> backends;

  friend bool operator==(const PoolConfig&, const PoolConfig&) = default;
};

enum class CheckKind : std::uint8_t { tcp };

/// A direct check: it connects to the backend's own address.
struct CheckConfig {
  std::string name;
  CheckKind kind = CheckKind::tcp;
  std::optional<std::uint16_t> port;  // default: the first port of the first service using the pool
  std::chrono::milliseconds interval{1000};
  std::chrono::milliseconds timeout{1000};
  std::uint32_t rise = 3;
  std::uint32_t fall = 2;

  friend bool operator==(const CheckConfig&, const CheckConfig&) = default;
};

struct Config {
  SiteConfig site;
  DataplaneConfig dataplane;
  ControlConfig control;
  std::vector<VipConfig> vips;
  std::optional<BgpConfig> bgp;  // absent: nothing is announced
  std::vector<ServiceConfig> services;
  std::vector<PoolConfig> pools;
  std::vector<CheckConfig> checks;

  [[nodiscard]] const PoolConfig* pool(std::string_view name) const;
  [[nodiscard]] const CheckConfig* check(std::string_view name) const;
  /// Where the check of `pool` connects: the check's own port, else the first port of the first
  /// service in the file that uses the pool. Empty: no such service, or its ports are "any" (which
  /// parse_config refuses for a pool with a check).
  [[nodiscard]] std::optional<std::uint16_t> check_port(const PoolConfig& pool) const;

  friend bool operator==(const Config&, const Config&) = default;
};

/// One fault of a config file; all faults are reported at once, sorted by position.
struct ConfigFault {
  std::string file;
  std::uint32_t line = 0;    // from 1; 0: the fault has no one place
  std::uint32_t column = 0;  // from 1
  std::string message;

  /// "file:line:column: message"
  [[nodiscard]] std::string text() const;
};

struct ConfigResult {
  Config config;
  std::vector<ConfigFault> faults;  // empty: `config` is good

  [[nodiscard]] bool ok() const { return faults.empty(); }
};

/// Parses and checks `text`. `file` is named in faults, and its folder is where relative paths
/// start (textually: nothing is opened). A syntax error is reported alone.
[[nodiscard]] ConfigResult parse_config(std::string_view text, std::string_view file);

/// A hundred years, which is for ever: what is longer counts as this, so that a duration can be
/// added to any Instant (64 bits of nanoseconds end after 292 years).
inline constexpr std::chrono::milliseconds kLongestDuration = std::chrono::hours(24 * 36'525);

/// "250ms", "10s", "15m", "2h": a whole number and one unit. Nothing else.
[[nodiscard]] std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);

}  // namespace holdfast

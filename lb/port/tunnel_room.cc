// SPDX-License-Identifier: Apache-2.0
#include "lb/port/tunnel_room.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

namespace holdfast {
namespace {

static_assert(kMaxClientMtu + tunnel_overhead(Encapsulation::ipip, Family::ipv4) == kMaxAfXdpMtu);

/// Which of the ports to a backend takes the longest packets; nullopt: one of them is no kernel
/// interface, or there is none.
std::optional<std::size_t> widest_port(const BackendConfig& backend,
                                       const std::vector<PortConfig>& ports,
                                       std::span<const KernelInterface> interfaces) {
  std::optional<std::size_t> widest;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const bool kernel = !ports[i].interface.empty();
    // Without a fixed next hop the kernel's routes decide.
    if (backend.next_hop ? ports[i].name != backend.next_hop->port : !kernel) continue;
    if (!kernel) return std::nullopt;
    if (!widest || interfaces[i].mtu > interfaces[*widest].mtu) widest = i;
  }
  return widest;
}

struct Narrow {
  std::size_t port = 0;
  Family family = Family::ipv4;
  unsigned header = 0;  // bytes; 0: nothing is too narrow
};

/// What to do; with a lower client_mtu longer packets are answered or fragmented.
std::string ways_out(const Narrow& narrow, unsigned needed, const KernelInterface& interface) {
  const unsigned room = std::min(interface.mtu, kMaxAfXdpMtu);
  const auto lower = room < kMinClientMtu + narrow.header
                         ? std::string()
                         : fmt::format(
                               "set client_mtu = {} in [dataplane] if clients shall be told "
                               "to send no more",
                               room - narrow.header);
  if (needed > kMaxAfXdpMtu) return fmt::format("AF_XDP takes at most {}: {}", kMaxAfXdpMtu, lower);
  return fmt::format("`ip link set {} mtu {}`{}{}", interface.name, needed,
                     lower.empty() ? "" : ", or ", lower);
}

Error too_narrow(const Narrow& narrow, unsigned client_mtu, const PortConfig& port,
                 const KernelInterface& interface) {
  const unsigned needed = client_mtu + narrow.header;
  return {fmt::format(
      "port {}: interface {} has MTU {}, but in a tunnel to an {} backend packets "
      "of clients have up to {} bytes (client_mtu {} and a header of {}): {}",
      port.name, interface.name, interface.mtu, narrow.family == Family::ipv4 ? "IPv4" : "IPv6",
      needed, client_mtu, narrow.header, ways_out(narrow, needed, interface))};
}

}  // namespace

Result<void> check_tunnel_room(const Config& config, std::span<const KernelInterface> interfaces) {
  const auto& ports = config.dataplane.ports;
  const unsigned client_mtu = config.dataplane.client_mtu;
  Narrow worst;
  for (const PoolConfig& pool : config.pools) {
    for (const BackendConfig& backend : pool.backends) {
      const Family family = backend.address.family();
      const unsigned header = tunnel_overhead(pool.encapsulation, family);
      if (header <= worst.header) continue;
      const auto port = widest_port(backend, ports, interfaces);
      if (port && interfaces[*port].mtu < client_mtu + header) worst = {*port, family, header};
    }
  }
  if (worst.header == 0) return {};
  return tl::unexpected(too_narrow(worst, client_mtu, ports[worst.port], interfaces[worst.port]));
}

}  // namespace holdfast

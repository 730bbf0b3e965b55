// SPDX-License-Identifier: Apache-2.0
// Any bytes as a config file: no crash, what is accepted keeps the promises that the rest of the
// program builds on, and it comes back unchanged when it is written and read again.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "lib/base/printable.h"
#include "lib/config/write_config.h"
#include "lib/maglev/maglev.h"
#include "lib/protocol/socket_path.h"

namespace {

void require(bool promise) {
  if (!promise) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace holdfast;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto [config, faults] = parse_config(text, "/etc/holdfast/holdfast.toml");
  for (const auto& fault : faults) {
    require(!fault.message.empty() && find_control(fault.text()).empty());
    require((fault.line == 0) == (fault.column == 0));
  }
  if (!faults.empty()) return 0;

  const auto& dataplane = config.dataplane;
  require(!dataplane.ports.empty() && dataplane.hash_seed_file.starts_with('/'));
  require(find_control(dataplane.hash_seed_file).empty());
  require(find_control(config.control.socket).empty());
  require(config.control.socket.size() <= kMaxSocketPath);
  for (const auto& port : dataplane.ports)
    require(!port.name.empty() && find_control(port.interface + port.vdev + port.pci).empty() &&
            port.queues >= dataplane.workers &&
            port.interface.empty() + port.vdev.empty() + port.pci.empty() == 2);
  for (const auto& vip : config.vips) {
    require(vip.prepend <= 10 && (config.bgp || (vip.announce && vip.communities.empty())));
    if (!config.bgp || !vip.announce) continue;
    const auto& hop = vip.address.is_v4() ? config.bgp->next_hop : config.bgp->next_hop_v6;
    require(hop && hop->family() == vip.address.family() && *hop != vip.address);
  }
  for (const auto& service : config.services)
    require(!service.name.empty() && !service.vips.empty() &&
            config.pool(service.pool) != nullptr && service.max_share > 0 &&
            service.max_share <= 1);
  const bool kernel = std::any_of(dataplane.ports.begin(), dataplane.ports.end(),
                                  [](const PortConfig& port) { return !port.interface.empty(); });
  for (const auto& pool : config.pools) {
    require(is_prime(pool.table_size) && pool.backends.size() <= pool.table_size);
    for (const auto& backend : pool.backends) {
      const auto& source =
          backend.address.is_v4() ? dataplane.tunnel_source_v4 : dataplane.tunnel_source_v6;
      require(source != backend.address && (backend.next_hop ? source.has_value() : kernel));
    }
    if (pool.check.empty()) continue;
    require(config.check(pool.check) != nullptr && config.check_port(pool).has_value());
  }
  const auto again = parse_config(write_config(config), "/elsewhere/holdfast.toml");
  require(again.ok() && again.config == config);
  return 0;
}

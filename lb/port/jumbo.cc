// SPDX-License-Identifier: Apache-2.0
#include "lb/port/jumbo.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace holdfast {
namespace {

std::uint16_t widest_mtu(const rte_eth_dev_info& info, std::uint32_t longest_frame) {
  if (info.max_rx_pktlen > kLinkOverhead)
    longest_frame = std::min(longest_frame, info.max_rx_pktlen);
  return static_cast<std::uint16_t>(
      std::min<std::uint32_t>(info.max_mtu, longest_frame - kLinkOverhead));
}

}  // namespace

bool expects_jumbo(const Config& config) {
  for (const PoolConfig& pool : config.pools)
    for (const BackendConfig& backend : pool.backends)
      if (backend.next_hop && backend.next_hop->mtu + kLinkOverhead > kRoomInBuffer) return true;
  return false;
}

JumboWishes jumbo_wishes(DeviceKind kind, const rte_eth_dev_info& info, bool jumbo) {
  JumboWishes wishes;
  if (jumbo) {
    wishes.receive_offloads = info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER;
    wishes.transmit_offloads = info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
  }
  if (kind == DeviceKind::pci)
    wishes.mtu = widest_mtu(info, wishes.receive_offloads != 0 ? UINT16_MAX : kRoomInBuffer);
  return wishes;
}

bool takes_chains(const rte_eth_dev_info& info, std::uint64_t transmit_offloads) {
  if ((transmit_offloads & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) != 0) return true;
  if (info.driver_name == nullptr) return false;
  constexpr std::array<std::string_view, 3> kWithoutOffload{"net_pcap", "net_null", "net_ring"};
  return std::ranges::find(kWithoutOffload, std::string_view(info.driver_name)) !=
         kWithoutOffload.end();
}

}  // namespace holdfast

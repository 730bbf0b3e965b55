// SPDX-License-Identifier: Apache-2.0
#include "lb/port/jumbo.h"

#include "tests/catch.h"

namespace holdfast {
namespace {

Config with_next_hop(std::uint16_t mtu) {
  Config config;
  BackendConfig backend;
  backend.next_hop = StaticNextHop{.port = "p", .mac = {}, .vlan = 0, .mtu = mtu};
  config.pools.emplace_back().backends = {BackendConfig{}, backend};
  return config;
}

/// A NIC that can do all of it.
rte_eth_dev_info able() {
  rte_eth_dev_info info{};
  info.rx_offload_capa = RTE_ETH_RX_OFFLOAD_SCATTER | RTE_ETH_RX_OFFLOAD_VLAN_STRIP;
  info.tx_offload_capa = RTE_ETH_TX_OFFLOAD_MULTI_SEGS | RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
  info.max_mtu = 9702;
  info.max_rx_pktlen = 9728;
  info.driver_name = "net_i40e";
  return info;
}

TEST_CASE("jumbo frames are expected when a way to a backend takes more than a buffer") {
  CHECK_FALSE(expects_jumbo(Config{}));
  CHECK_FALSE(expects_jumbo(with_next_hop(1600)));
  CHECK_FALSE(expects_jumbo(with_next_hop(3686)));
  CHECK(expects_jumbo(with_next_hop(3687)));
  CHECK(expects_jumbo(with_next_hop(9000)));
}

TEST_CASE("a NIC is asked for chains and its whole MTU only when jumbo frames are expected") {
  CHECK(jumbo_wishes(DeviceKind::pci, able(), false) == JumboWishes{.mtu = 3686});
  CHECK(jumbo_wishes(DeviceKind::pci, able(), true) ==
        JumboWishes{.receive_offloads = RTE_ETH_RX_OFFLOAD_SCATTER,
                    .transmit_offloads = RTE_ETH_TX_OFFLOAD_MULTI_SEGS,
                    .mtu = 9702});
}

TEST_CASE("a device is asked for nothing that it does not have") {
  rte_eth_dev_info info = able();
  info.rx_offload_capa = 0;
  info.tx_offload_capa = 0;
  CHECK(jumbo_wishes(DeviceKind::pci, info, true) == JumboWishes{.mtu = 3686});
  info.max_mtu = 1500;
  CHECK(jumbo_wishes(DeviceKind::pci, info, true) == JumboWishes{.mtu = 1500});
  info.max_mtu = UINT16_MAX;
  info.max_rx_pktlen = 2026;
  CHECK(jumbo_wishes(DeviceKind::pci, info, true) == JumboWishes{.mtu = 2000});
}

TEST_CASE("devices without a wire of their own keep their MTU") {
  CHECK(jumbo_wishes(DeviceKind::vdev, able(), false) == JumboWishes{});
  CHECK(jumbo_wishes(DeviceKind::af_xdp, able(), false) == JumboWishes{});
  CHECK(jumbo_wishes(DeviceKind::vdev, able(), true).mtu == 0);
}

TEST_CASE("chains go to devices that were set up for them, or never needed to be") {
  rte_eth_dev_info info = able();
  CHECK_FALSE(takes_chains(info, 0));
  CHECK(takes_chains(info, RTE_ETH_TX_OFFLOAD_MULTI_SEGS));
  for (const char* driver : {"net_pcap", "net_null", "net_ring"}) {
    info.driver_name = driver;
    CHECK(takes_chains(info, 0));
  }
  for (const char* driver : {"net_af_xdp", "net_memif"}) {
    info.driver_name = driver;
    CHECK_FALSE(takes_chains(info, 0));
  }
  info.driver_name = nullptr;
  CHECK_FALSE(takes_chains(info, 0));
}

}  // namespace
}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// What holdfastd refuses at its start, as far as it is decided over values: the MTU for tunnels,
// the far end of a veth, PCI devices. (Huge pages and queues are in port_plan_test.cc.)
#include <string>
#include <vector>

#include "lb/port/pci_device.h"
#include "lb/port/tunnel_room.h"
#include "lb/port/veth_peer.h"
#include "tests/catch.h"

namespace holdfast {
namespace {

template <class T>
std::string fault_of(const Result<T>& result) {
  return result ? std::string() : result.error().text();
}

/// Two ports on kernel interfaces, one without; IPv4 and IPv6 backends as wanted.
struct Site {
  Config config;
  std::vector<KernelInterface> interfaces{
      {.name = "eth0", .mtu = 1500}, {.name = "eth1", .mtu = 1500}, {}};

  Site() {
    config.dataplane.ports = {{.name = "up", .interface = "eth0", .vdev = {}, .pci = {}},
                              {.name = "down", .interface = "eth1", .vdev = {}, .pci = {}},
                              {.name = "cap", .interface = {}, .vdev = "net_null0", .pci = {}}};
    config.pools.resize(1);
  }
  BackendConfig& add(std::string_view address) {
    config.pools[0].backends.emplace_back().address = IpAddress::parse(address).value();
    return config.pools[0].backends.back();
  }
  [[nodiscard]] std::string fault() const {
    return fault_of(check_tunnel_room(config, interfaces));
  }
};

TEST_CASE("an MTU without room for client_mtu and the tunnel's header is refused, with the sum") {
  Site site;
  site.add("192.0.2.21");
  CHECK(site.fault() ==
        "port up: interface eth0 has MTU 1500, but in a tunnel to an IPv4 backend packets of "
        "clients have up to 1520 bytes (client_mtu 1500 and a header of 20): `ip link set eth0 mtu "
        "1520`, or set client_mtu = 1480 in [dataplane] if clients shall be told to send no more");
  SECTION("raised") { site.interfaces[0].mtu = 1520; }
  SECTION("lowered") { site.config.dataplane.client_mtu = 1480; }
  CHECK(site.fault().empty());
}

TEST_CASE("the longest header that is in use decides") {
  Site site;
  site.interfaces[0].mtu = 1520;
  site.add("192.0.2.21");
  CHECK(site.fault().empty());
  site.add("2001:db8::21");
  CHECK(site.fault().find("IPv6 backend packets of clients have up to 1540 bytes") !=
        std::string::npos);
  CHECK(site.fault().find("`ip link set eth0 mtu 1540`, or set client_mtu = 1480") !=
        std::string::npos);
}

TEST_CASE("one port that is wide enough will do, since routes may lead there") {
  Site site;
  site.add("2001:db8::21");
  site.interfaces[1].mtu = 1540;
  CHECK(site.fault().empty());
}

TEST_CASE("a fixed next hop needs its own port, and nothing of a port without kernel interface") {
  Site site;
  site.interfaces[1].mtu = 1600;
  auto& backend = site.add("192.0.2.21");
  backend.next_hop = StaticNextHop{.port = "up", .mac = {}};
  CHECK(site.fault().find("port up: interface eth0") == 0);
  backend.next_hop->port = "down";
  CHECK(site.fault().empty());
  backend.next_hop->port = "cap";
  CHECK(site.fault().empty());
}

TEST_CASE("where AF_XDP has no room for the sum, only a lower client_mtu is advised") {
  Site site;
  site.config.dataplane.client_mtu = kMaxClientMtu;
  site.interfaces[0].mtu = kMaxAfXdpMtu;
  site.add("192.0.2.21");
  CHECK(site.fault().empty());
  site.add("2001:db8::21");
  const auto fault = site.fault();
  CHECK(fault.find("AF_XDP takes at most 3420: set client_mtu = 3380") != std::string::npos);
  CHECK(fault.find("ip link") == std::string::npos);
}

TEST_CASE("a client_mtu that no file may have is not advised") {
  Site site;
  site.add("192.0.2.21");
  site.interfaces[0].mtu = site.interfaces[1].mtu = 595;
  CHECK(site.fault().find("client_mtu =") == std::string::npos);
  site.interfaces[0].mtu = 596;
  CHECK(site.fault().find("set client_mtu = 576") != std::string::npos);
}

TEST_CASE("the far end of a veth is refused while it leaves checksums, with the command") {
  VethPeer peer{.seen = VethPeer::Seen::looked_at, .name = "to-lb1", .leaves_checksums = true};
  CHECK(fault_of(check_veth_peer("eth0", peer)) ==
        "the far end of eth0, a veth, leaves checksums to hardware that is not there, so backends "
        "would drop what comes from it: `ethtool -K to-lb1 tx off`");
  peer.prefix = "ip netns exec router ";
  CHECK(fault_of(check_veth_peer("eth0", peer)).find("`ip netns exec router ethtool -K to-lb1") !=
        std::string::npos);
  peer.leaves_checksums = false;
  CHECK(check_veth_peer("eth0", peer));
  CHECK(check_veth_peer("eth0", {.seen = VethPeer::Seen::elsewhere}));
  CHECK(check_veth_peer("eth0", {}));
}

TEST_CASE("the loopback interface is no veth") {
  CHECK(find_veth_peer(1).seen == VethPeer::Seen::no_veth);
}

TEST_CASE("a PCI device must be there, a NIC, bound to a driver for DPDK, and free") {
  PciDevice device{.address = "0000:3b:00.0"};
  CHECK(fault_of(check_pci_device(device)) ==
        "there is no PCI device 0000:3b:00.0: `ls /sys/bus/pci/devices` lists those of this "
        "machine");
  device.present = true;
  device.device_class = 0x060400;
  CHECK(fault_of(check_pci_device(device)) ==
        "PCI device 0000:3b:00.0 is no network card (its class is 060400): name one, `lspci -D` "
        "says what each is");
  device.device_class = 0x020000;
  CHECK(fault_of(check_pci_device(device)) ==
        "PCI device 0000:3b:00.0 has no driver: bind it to vfio-pci with `dpdk-devbind.py -b "
        "vfio-pci 0000:3b:00.0` (package dpdk)");
  device.driver = "ixgbe";
  device.interface = "eth1";
  CHECK(fault_of(check_pci_device(device)) ==
        "PCI device 0000:3b:00.0 belongs to the kernel's driver ixgbe (interface eth1): name it by "
        "`interface`, or if this host can do without it, bind it to vfio-pci with "
        "`dpdk-devbind.py -b vfio-pci 0000:3b:00.0` (package dpdk)");
  device.driver = "vfio-pci";
  CHECK(check_pci_device(device));
  device.group = "/dev/vfio/12";
  device.held = true;
  CHECK(fault_of(check_pci_device(device)) ==
        "another program holds PCI device 0000:3b:00.0: stop that one first (`fuser -v "
        "/dev/vfio/12` shows it)");
}

TEST_CASE("a PCI device that is not there is read as such, in whatever way it is written") {
  const PciDevice device = read_pci_device("FE:1f.7");
  CHECK(device.address == "0000:fe:1f.7");
  CHECK_FALSE(device.present);
}

}  // namespace
}  // namespace holdfast

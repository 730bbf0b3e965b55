// SPDX-License-Identifier: Apache-2.0
// What a good configuration becomes.
#include "tests/unit/config_text.h"

using namespace holdfast;
using namespace holdfast::config_text;
using namespace std::chrono_literals;

TEST_CASE("a config file becomes values") {
  const auto config = good_config(kGood, "/etc/holdfast/h.toml");
  CHECK(config.site.name == "fra1");
  REQUIRE(config.dataplane.ports.size() == 2);
  CHECK(config.dataplane.ports[0].name == "up");
  CHECK(config.dataplane.ports[0].interface == "eth1");
  CHECK(config.dataplane.ports[0].queues == 2);
  CHECK(config.dataplane.ports[1].vdev == "net_pcap0,rx_pcap=in.pcap");
  CHECK(config.dataplane.ports[1].queues == 1);
  CHECK(config.dataplane.hash_seed_file == "/etc/holdfast/seed");
  REQUIRE(config.vips.size() == 2);
  CHECK(config.vips[1].address == IpAddress::parse("2001:db8::10"));
  REQUIRE(config.services.size() == 2);
  CHECK(config.services[0].protocol == IpProtocol::tcp);
  CHECK(config.services[0].vips.size() == 2);
  CHECK(config.services[0].ports == PortRange{443, 443});
  CHECK(config.services[1].protocol == IpProtocol::udp);
  CHECK(config.services[1].ports == PortRange{8000, 8999});
  CHECK(config.services[0].timeouts == FlowTimeouts{20s, 125min, 60s, 120s});
  CHECK(config.services[0].max_share == 1.0);
  CHECK(config.services[0].embryonic_share == 0.25);
  CHECK(config.services[1].timeouts.udp == 30s);
  CHECK(config.services[1].timeouts.closing == FlowTimeouts{}.closing);
  REQUIRE(config.pools.size() == 1);
  CHECK(config.pools[0].table_size == 65537);
  CHECK(config.pools[0].down_grace == 10s);
  REQUIRE(config.pools[0].backends.size() == 2);
  CHECK(config.pools[0].backends[0].name == "b1");
  CHECK(config.pools[0].backends[0].weight == 100);
  CHECK(config.pools[0].backends[1].name == "2001:db8:1::22");
  CHECK(config.pools[0].backends[1].weight == 0);
  REQUIRE(config.checks.size() == 1);
  CHECK(config.checks[0].interval == 1s);
  CHECK(config.pool("proxies") == &config.pools[0]);
  CHECK(config.pool("other") == nullptr);
  CHECK(config.check("alive") == &config.checks[0]);
}

TEST_CASE("every optional key is read") {
  const auto config = good_config(R"(
[dataplane]
ports = [{ name = "nic", pci = "0000:03:00.1", queues = 8 }, { name = "m", vdev = "net_memif0", queues = 4 }]
workers = 4
flow_capacity = 5000000
hash_seed_file = "/secret/seed"
busy_poll = true
client_mtu = 3400
tunnel_source_v4 = "192.0.2.1"
tunnel_source_v6 = "2001:db8:1::1"
icmp_relay_rate = 0
icmp_answer_rate = 1000000000
sibling_lookup_rate = 5
[control]
socket = "run/h.sock"
linger = "1m"
[bgp]
mode = "external"
gobgp = "unix:run/gobgp.sock"
next_hop = "192.0.2.5"
next_hop_v6 = "2001:db8:1::5"
[[vip]]
address = "203.0.113.10"
announce = true
communities = ["65535:65535", "no-advertise", "no-export", "64512:7", "graceful-shutdown", "0:0"]
prepend = 10
med = 4294967295
echo = false
unknown_port = "reject"
[[service]]
name = "dns"
vips = ["203.0.113.10"]
protocol = "udp"
ports = "any"
pool = "p"
udp_on_drain = "repick"
max_share = 0.5
embryonic_share = 1
timeouts = { embryonic = "1s", established = "120h", closing = "2m", udp = "2000ms" }
[[pool]]
name = "p"
table_size = 251
encapsulation = "gue0"
dscp = 63
udp6_checksum = false
check = "c"
down_grace = "250ms"
[[pool.backends]]
address = "192.0.2.21"
weight = 1000
next_hop = { port = "m", mac = "02:00:5e:10:00:01", vlan = 7, mtu = 9000 }
[[check]]
name = "c"
kind = "tcp"
port = 8080
interval = "500ms"
timeout = "200ms"
rise = 1
fall = 9
)",
                                  "etc/h.toml");
  const auto& dataplane = config.dataplane;
  CHECK(dataplane.ports[0].pci == "0000:03:00.1");
  CHECK(dataplane.workers == 4);
  CHECK(dataplane.flow_capacity == 5'000'000);
  CHECK(dataplane.hash_seed_file == "/secret/seed");
  CHECK(dataplane.busy_poll);
  CHECK(dataplane.client_mtu == 3400);
  CHECK(dataplane.tunnel_source_v4 == IpAddress::parse("192.0.2.1"));
  CHECK(dataplane.tunnel_source_v6 == IpAddress::parse("2001:db8:1::1"));
  CHECK(dataplane.icmp_relay_rate == 0);
  CHECK(dataplane.icmp_answer_rate == 1'000'000'000);
  CHECK(dataplane.sibling_lookup_rate == 5);
  CHECK(config.control.socket == "etc/run/h.sock");
  CHECK(config.control.linger == 60s);
  REQUIRE(config.bgp);
  CHECK(config.bgp->mode == BgpMode::external);
  CHECK(config.bgp->gobgp == "unix:etc/run/gobgp.sock");
  CHECK(config.bgp->next_hop == IpAddress::parse("192.0.2.5"));
  CHECK(config.bgp->next_hop_v6 == IpAddress::parse("2001:db8:1::5"));
  const auto& vip = config.vips[0];
  CHECK(vip.announce);
  CHECK(vip.communities == std::vector<std::uint32_t>{0, 0xfc00'0007, 0xffff'0000, 0xffff'ff01,
                                                      0xffff'ff02, 0xffff'ffff});
  CHECK(vip.prepend == 10);
  CHECK(vip.med == 4'294'967'295U);
  CHECK_FALSE(vip.echo);
  CHECK(vip.reject_unknown_port);
  const auto& service = config.services[0];
  CHECK(service.ports.is_any());
  CHECK(service.udp_repick_on_drain);
  CHECK(service.max_share == 0.5);
  CHECK(service.embryonic_share == 1.0);
  CHECK(service.timeouts == FlowTimeouts{1s, 120h, 2min, 2s});
  const auto& pool = config.pools[0];
  CHECK(pool.table_size == 251);
  CHECK(pool.encapsulation == Encapsulation::gue0);
  CHECK(pool.dscp == 63);
  CHECK_FALSE(pool.udp6_checksum);
  CHECK(pool.down_grace == 250ms);
  const auto& hop = pool.backends[0].next_hop;
  REQUIRE(hop);
  CHECK(hop->port == "m");
  CHECK(hop->mac == MacAddress::parse("02:00:5e:10:00:01"));
  CHECK(hop->vlan == 7);
  CHECK(hop->mtu == 9000);
  const auto& check = config.checks[0];
  CHECK(check.port == 8080);
  CHECK(check.interval == 500ms);
  CHECK(check.timeout == 200ms);
  CHECK(check.rise == 1);
  CHECK(check.fall == 9);
}

TEST_CASE("a pool may be empty or have only weights of 0") {
  CHECK(good_config(edited("{ name = \"b1\", address = \"192.0.2.21\" }",
                           "{ name = \"b1\", address = \"192.0.2.21\", weight = 0 }"))
            .pools[0]
            .backends.size() == 2);
  good_config(
      "[dataplane]\nports=[{name=\"a\",vdev=\"net_null0\"}]\nhash_seed_file=\"s\"\n"
      "[[pool]]\nname=\"p\"\nbackends=[]\n");
}

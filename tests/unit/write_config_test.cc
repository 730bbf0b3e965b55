// SPDX-License-Identifier: Apache-2.0
#include "lib/config/write_config.h"

#include "tests/catch.h"

using namespace holdfast;

namespace {

// Every key that there is, none with its default.
constexpr std::string_view kFull = R"([site]
name = "fra1"
[dataplane]
ports = [{ name = "up", interface = "e\"t\\h1", queues = 3 }, { name = "cap", vdev = "net_pcap0,rx_pcap=in", queues = 2 },
         { name = "nic", pci = "0000:03:00.1", queues = 2 }]
workers = 2
flow_capacity = 5000
hash_seed_file = "seeds/\u00e9"
busy_poll = true
client_mtu = 1400
tunnel_source_v4 = "192.0.2.1"
tunnel_source_v6 = "2001:db8:100::1"
ipip_source_spread = ["2001:db8:9::/64", "10.9.0.0/16"]
icmp_relay_rate = 0
icmp_answer_rate = 5
sibling_lookup_rate = 7
[control]
socket = "run/h.sock"
linger = "1500ms"
[bgp]
gobgp = "unix:/run/gobgp.sock"
next_hop = "192.0.2.2"
next_hop_v6 = "2001:db8:100::2"
[[vip]]
address = "203.0.113.10"
communities = ["graceful-shutdown", "64512:100"]
med = 4294967295
prepend = 3
echo = false
[[vip]]
address = "2001:db8::10"
announce = false
unknown_port = "reject"
[[service]]
name = "web"
vips = ["203.0.113.10", "2001:db8::10"]
ports = "443"
pool = "proxies"
mss_clamp = 1220
embryonic_share = 0.1
[[service]]
name = "media"
vips = ["203.0.113.10"]
protocol = "udp"
ports = "8000-8999"
pool = "proxies"
udp_on_drain = "repick"
max_share = 0.3333333333333333
timeouts = { udp = "30s", established = "2h", embryonic = "5s", closing = "90s" }
[[service]]
name = "rest"
vips = ["203.0.113.10"]
protocol = "udp"
ports = "any"
pool = "other"
udp = "stateless"
[[pool]]
name = "proxies"
check = "alive"
table_size = 251
encapsulation = "gue"
dscp = 46
udp6_checksum = false
down_grace = "250ms"
backends = [{ name = "b1", address = "192.0.2.21", weight = 0, next_hop = { port = "cap", mac = "02:00:5e:10:00:01", vlan = 7, mtu = 9000 } },
            { address = "2001:db8:1::22" }]
[[pool]]
name = "other"
backends = [{ name = "b3", address = "192.0.2.23", weight = 1000 }]
[[check]]
name = "alive"
port = 80
interval = "5s"
timeout = "700ms"
rise = 1
fall = 9
)";

Config parsed(std::string_view text, std::string_view file = "h.toml") {
  const auto result = parse_config(text, file);
  for (const auto& fault : result.faults) FAIL(fault.text());
  return result.config;
}

}  // namespace

TEST_CASE("a configuration that is written and read again is the same") {
  const Config config = parsed(kFull);
  CHECK(parsed(write_config(config)) == config);
  Config other = config;
  other.pools[0].backends[0].weight = 1;
  CHECK_FALSE(parsed(write_config(other)) == config);
  CHECK(parsed(write_config(other)) == other);
}

TEST_CASE("written twice it is the same text, and paths are whole") {
  const Config config = parsed(kFull, "/etc/holdfast/h.toml");
  const auto text = write_config(config);
  CHECK(write_config(parsed(text, "/elsewhere/x.toml")) == text);
  CHECK(text.find("socket = \"/etc/holdfast/run/h.sock\"\n") != std::string::npos);
}

TEST_CASE("defaults are written, too, and what is not there is not") {
  const Config config = parsed(R"([dataplane]
ports = [{ name = "a", vdev = "net_null0" }]
hash_seed_file = "/s"
[[pool]]
name = "p"
backends = []
)");
  const auto text = write_config(config);
  CHECK(parsed(text) == config);
  CHECK(text ==
        "[site]\n"
        "\n[dataplane]\n"
        "ports = [\n  { name = \"a\", vdev = \"net_null0\", queues = 1 },\n]\n"
        "workers = 1\n"
        "flow_capacity = 1000000\n"
        "hash_seed_file = \"/s\"\n"
        "busy_poll = false\n"
        "client_mtu = 1500\n"
        "ipip_source_spread = []\n"
        "icmp_relay_rate = 1000\n"
        "icmp_answer_rate = 1000\n"
        "sibling_lookup_rate = 10000\n"
        "\n[control]\n"
        "socket = \"/run/holdfast/holdfast.sock\"\n"
        "linger = \"10s\"\n"
        "\n[[pool]]\n"
        "name = \"p\"\n"
        "table_size = 65537\n"
        "encapsulation = \"ipip\"\n"
        "dscp = \"copy\"\n"
        "down_grace = \"10s\"\n"
        "backends = []\n");
}

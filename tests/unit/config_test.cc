// SPDX-License-Identifier: Apache-2.0
#include "lib/config/config.h"

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/instant.h"
#include "lib/base/printable.h"
#include "tests/catch.h"

using namespace holdfast;
using namespace std::chrono_literals;

namespace {

// Line numbers matter: the faults below name them.
constexpr std::string_view kGood = R"([site]
name = "fra1"

[dataplane]
ports = [{ name = "up", interface = "eth1", queues = 2 },
         { name = "cap", vdev = "net_pcap0,rx_pcap=in.pcap" }]
workers = 1
hash_seed_file = "seed"

[[vip]]
address = "203.0.113.10"

[[vip]]
address = "2001:db8::10"

[[service]]
name = "web"
vips = ["203.0.113.10", "2001:db8::10"]
ports = "443"
pool = "proxies"

[[service]]
name = "media"
vips = ["203.0.113.10"]
protocol = "udp"
ports = "8000-8999"
pool = "proxies"
timeouts = { udp = "30s" }

[[pool]]
name = "proxies"
check = "alive"
backends = [{ name = "b1", address = "192.0.2.21" },
            { address = "2001:db8:1::22", weight = 0 }]

[[check]]
name = "alive"
)";

std::vector<std::string> faults_of(std::string_view text) {
  std::vector<std::string> result;
  for (const auto& fault : parse_config(text, "h.toml").faults) result.push_back(fault.text());
  return result;
}

/// kGood with the one occurrence of `before` replaced.
std::string edited(std::string_view before, std::string_view after) {
  std::string text{kGood};
  const auto at = text.find(before);
  REQUIRE(at != std::string::npos);
  REQUIRE(text.find(before, at + 1) == std::string::npos);
  return text.replace(at, before.size(), after);
}

struct Edit {
  std::string_view before, after, fault;
};

/// Each edit alone brings exactly its fault.
void check_edits(const std::vector<Edit>& edits) {
  for (const auto& edit : edits) {
    INFO("replace: " << edit.before << "\nby: " << edit.after);
    CHECK(faults_of(edited(edit.before, edit.after)) ==
          std::vector<std::string>{std::string{edit.fault}});
  }
}

Config good_config(std::string_view text, std::string_view file = "h.toml") {
  auto result = parse_config(text, file);
  for (const auto& fault : result.faults) UNSCOPED_INFO(fault.text());
  REQUIRE(result.ok());
  return std::move(result.config);
}

}  // namespace

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
tunnel_source_v4 = "192.0.2.1"
tunnel_source_v6 = "2001:db8:1::1"
icmp_relay_rate = 0
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
encapsulation = "ipip"
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
  CHECK(dataplane.tunnel_source_v4 == IpAddress::parse("192.0.2.1"));
  CHECK(dataplane.tunnel_source_v6 == IpAddress::parse("2001:db8:1::1"));
  CHECK(dataplane.icmp_relay_rate == 0);
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
  const auto& service = config.services[0];
  CHECK(service.ports.is_any());
  CHECK(service.udp_repick_on_drain);
  CHECK(service.max_share == 0.5);
  CHECK(service.embryonic_share == 1.0);
  CHECK(service.timeouts == FlowTimeouts{1s, 120h, 2min, 2s});
  const auto& pool = config.pools[0];
  CHECK(pool.table_size == 251);
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

TEST_CASE("an empty config file is told what it needs") {
  CHECK(faults_of("") ==
        std::vector<std::string>{
            "h.toml: [dataplane] needs \"ports\": a list such as [{ name = \"uplink\", interface = "
            "\"eth1\" }]",
            "h.toml: [dataplane] needs \"hash_seed_file\": a file with 16 hexadecimal digits, the "
            "same on every load balancer"});
}

TEST_CASE("a syntax error is reported alone, with its place") {
  const auto faults = parse_config(edited("workers = 1", "workers = = 1"), "h.toml").faults;
  REQUIRE(faults.size() == 1);
  CHECK(faults[0].line == 7);
  CHECK(faults[0].column == 11);
  CHECK(faults[0].message.find('\n') == std::string::npos);
}

TEST_CASE("a key that is given twice is a syntax error") {
  const auto faults =
      parse_config(edited("workers = 1", "workers = 1\nworkers = 2"), "h.toml").faults;
  REQUIRE(faults.size() == 1);
  CHECK(faults[0].line == 8);
}

TEST_CASE("every fault is reported at once, in the order of the file") {
  auto text = edited("workers = 1", "workers = 0");
  text += "fall = \"x\"\ninterval = 3\n";
  CHECK(faults_of(text) ==
        std::vector<std::string>{"h.toml:7:11: \"workers\" must be 1 to 128, not 0",
                                 "h.toml:38:8: \"fall\" must be a whole number, not a string",
                                 "h.toml:39:12: \"interval\" must be a duration in quotes such as "
                                 "\"10s\", not a whole number"});
}

TEST_CASE("an unknown key is named with its place and the nearest key") {
  check_edits({
      {"workers = 1", "worker = 1",
       "h.toml:7:1: unknown key \"worker\" in [dataplane]; did you mean \"workers\"?"},
      {"queues = 2", "qeues = 2",
       "h.toml:5:45: unknown key \"qeues\" in port \"up\"; did you mean \"queues\"?"},
      {"udp = \"30s\"", "upd = \"30s\"",
       "h.toml:28:14: unknown key \"upd\" in the timeouts of service \"media\"; did you mean "
       "\"udp\"?"},
      {"weight = 0", "colour = 0",
       "h.toml:34:43: unknown key \"colour\" in backend 2001:db8:1::22 of pool \"proxies\""},
      {"[site]", "[sit]", "h.toml:1:2: unknown key \"sit\" in the file; did you mean \"site\"?"},
      {"check = \"alive\"", "check = \"alive\"\nslow_start = \"30s\"",
       "h.toml:33:1: unknown key \"slow_start\" in pool \"proxies\""},
      {"name = \"fra1\"", "name = \"fra1\"\n\"a\\nb\" = 1",
       "h.toml:3:1: unknown key \"a\\x0ab\" in [site]"},
  });
}

TEST_CASE("a value of the wrong type says which type is meant") {
  check_edits({
      {"[site]\nname = \"fra1\"", "site = 3\n",
       "h.toml:1:8: \"site\" must be a table, not a whole number"},
      {"name = \"fra1\"", "name = true", "h.toml:2:8: \"name\" must be a string, not a boolean"},
      {"workers = 1", "workers = 1.5",
       "h.toml:7:11: \"workers\" must be a whole number, not a number with a fraction"},
      {"workers = 1", "workers = 1\nbusy_poll = \"yes\"",
       "h.toml:8:13: \"busy_poll\" must be true or false, not a string"},
      {"vips = [\"203.0.113.10\"]", "vips = \"203.0.113.10\"",
       "h.toml:24:8: \"vips\" must be a list of strings, not a string"},
      {"vips = [\"203.0.113.10\"]", "vips = [\"203.0.113.10\", 5]",
       "h.toml:24:25: \"vips\" must be a list of strings, not a whole number in it"},
      {"ports = \"443\"", "ports = 443",
       "h.toml:19:9: \"ports\" must be a string, not a whole number"},
      {"[[check]]", "[check]",
       "h.toml:36:1: \"check\" must be a list of tables: write [[check]], not a table"},
  });
}

TEST_CASE("a value out of range says which range is meant") {
  check_edits({
      {"workers = 1", "workers = 129", "h.toml:7:11: \"workers\" must be 1 to 128, not 129"},
      {"queues = 2", "queues = 0", "h.toml:5:54: \"queues\" must be 1 to 1024, not 0"},
      {"workers = 1", "workers = 1\nflow_capacity = -1",
       "h.toml:8:17: \"flow_capacity\" must be 1024 to 1000000000, not -1"},
      {"weight = 0", "weight = 1001", "h.toml:34:52: \"weight\" must be 0 to 1000, not 1001"},
      {"udp = \"30s\"", "udp = \"121h\"", "h.toml:28:20: \"udp\" must be 1s to 120h, not \"121h\""},
      {"udp = \"30s\"", "udp = \"1500ms\"", "h.toml:28:20: \"udp\" must be whole seconds"},
      {"udp = \"30s\"", "udp = \"30\"",
       "h.toml:28:20: \"udp\" must be a duration such as \"250ms\", \"10s\", \"15m\" or \"2h\", "
       "not "
       "\"30\""},
      {"protocol = \"udp\"", "protocol = \"sctp\"",
       "h.toml:25:12: \"protocol\" must be \"tcp\" or \"udp\", not \"sctp\""},
      {"ports = \"443\"", "ports = \"443\"\nmax_share = 0",
       "h.toml:20:13: \"max_share\" must be above 0 and at most 1, not 0"},
      {"ports = \"443\"", "ports = \"443\"\nmax_share = nan",
       "h.toml:20:13: \"max_share\" must be above 0 and at most 1, not nan"},
      {"ports = \"443\"", "ports = \"443\"\nembryonic_share = 1.01",
       "h.toml:20:19: \"embryonic_share\" must be above 0 and at most 1, not 1.01"},
      {"check = \"alive\"", "check = \"alive\"\nencapsulation = \"gre\"",
       "h.toml:33:17: \"encapsulation\" must be \"ipip\", not \"gre\""},
      {"check = \"alive\"", "check = \"alive\"\ntable_size = 65536",
       "h.toml:33:14: \"table_size\" must be a prime number, which 65536 is not; the next one is "
       "65537"},
      {"check = \"alive\"", "check = \"alive\"\ntable_size = 9999990",
       "h.toml:33:14: \"table_size\" must be a prime number, which 9999990 is not; the next one is "
       "9999991"},
      // The next prime after these is out of range itself.
      {"check = \"alive\"", "check = \"alive\"\ntable_size = 9999992",
       "h.toml:33:14: \"table_size\" must be a prime number, which 9999992 is not; the largest one "
       "is 9999991"},
      {"check = \"alive\"", "check = \"alive\"\ntable_size = 10000000",
       "h.toml:33:14: \"table_size\" must be a prime number, which 10000000 is not; the largest "
       "one "
       "is 9999991"},
      {"check = \"alive\"", "check = \"alive\"\ndown_grace = \"25h\"",
       "h.toml:33:14: \"down_grace\" must be 0s to 24h, not \"25h\""},
  });
}

TEST_CASE("ports are one port, a range or any") {
  for (const auto* ports : {"0", "65536", "80-", "-80", "90-80", "80-90-100", "0-80", " 80", "80 ",
                            "+80", "http", "", "Any", "80,81"}) {
    INFO(ports);
    const auto faults =
        faults_of(edited("ports = \"443\"", std::string{"ports = \""} + ports + '"'));
    CHECK(faults == std::vector<std::string>{
                        "h.toml:19:9: \"ports\" must be one port such as \"443\", a range such as "
                        "\"8000-8999\", or \"any\", not \"" +
                        std::string{ports} + '"'});
  }
  CHECK(good_config(edited("\"443\"", "\"1-65535\"")).services[0].ports == PortRange{1, 65535});
  CHECK(good_config(edited("\"443\"", "\"80-80\"")).services[0].ports == PortRange{80, 80});
}

TEST_CASE("what is required is named when it is missing") {
  check_edits({
      {"hash_seed_file = \"seed\"", "",
       "h.toml:4:1: [dataplane] needs \"hash_seed_file\": a file with 16 hexadecimal digits, the "
       "same on every load balancer"},
      {"hash_seed_file = \"seed\"", "hash_seed_file = \"\"",
       "h.toml:8:18: \"hash_seed_file\" must name a file"},
      {"name = \"up\", ", "", "h.toml:5:10: a port of [dataplane] needs \"name\""},
      {"[[vip]]\naddress = \"2001:db8::10\"", "[[vip]]\naddress = \"2001:db8::10\"\n[[vip]]",
       "h.toml:15:1: a VIP needs \"address\""},
      {"pool = \"proxies\"\ntimeouts", "timeouts", "h.toml:22:1: service \"media\" needs \"pool\""},
      {"ports = \"8000-8999\"\n", "",
       "h.toml:22:1: service \"media\" needs \"ports\": \"443\", \"8000-8999\" or \"any\""},
      {"vips = [\"203.0.113.10\"]\n", "",
       "h.toml:22:1: service \"media\" needs \"vips\": a list of addresses of [[vip]]"},
      {"vips = [\"203.0.113.10\"]", "vips = []",
       "h.toml:24:8: service \"media\" needs at least one VIP"},
      {"address = \"192.0.2.21\"", "weight = 1",
       "h.toml:33:13: backend \"b1\" of pool \"proxies\" needs \"address\""},
      {"name = \"alive\"\n", "name = \"alive\"\n[[check]]\n",
       "h.toml:38:1: a check needs \"name\""},
  });
}

TEST_CASE("a port is exactly one of interface, vdev and pci") {
  check_edits({
      {"interface = \"eth1\", ", "",
       "h.toml:5:10: port \"up\" needs exactly one of \"interface\", \"vdev\" and \"pci\"; it has "
       "none"},
      {"interface = \"eth1\"", "interface = \"eth1\", pci = \"03:00.0\"",
       "h.toml:5:10: port \"up\" needs exactly one of \"interface\", \"vdev\" and \"pci\"; it has "
       "more"},
      {"interface = \"eth1\"", "interface = \"an-interface-name\"",
       "h.toml:5:37: \"an-interface-name\" can not be a network interface: its name has 1 to 15 "
       "bytes, no '/', ':' or space"},
      {"vdev = \"net_pcap0,rx_pcap=in.pcap\"", "pci = \"3:0.0\"",
       "h.toml:6:32: \"3:0.0\" is not a PCI address such as \"0000:03:00.1\""},
      {"vdev = \"net_pcap0,rx_pcap=in.pcap\"", "vdev = \"pcap\"",
       "h.toml:6:33: \"pcap\" is not a DPDK network device: a vdev starts with the name of its "
       "driver, such as \"net_pcap0,...\""},
      {"name = \"cap\"", "name = \"up\"", "h.toml:6:19: there is another port \"up\" in line 5"},
      {"vdev = \"net_pcap0,rx_pcap=in.pcap\"", "interface = \"eth1\"",
       "h.toml:6:38: there is another port with interface \"eth1\" in line 5"},
      {"in.pcap\"", "in.pcap\" }, { name = \"c2\", vdev = \"net_pcap0,tx_pcap=out\"",
       "h.toml:6:86: there is another port with vdev \"net_pcap0\" in line 6"},
  });
  CHECK(faults_of("[dataplane]\nports = []\nhash_seed_file = \"s\"") ==
        std::vector<std::string>{"h.toml:2:9: [dataplane] needs at least one port"});
}

TEST_CASE("every port needs a queue for each worker") {
  CHECK(faults_of(edited("workers = 1", "workers = 2")) ==
        std::vector<std::string>{"h.toml:6:10: port \"cap\" has fewer queues (1) than there are "
                                 "workers (2); each worker needs its own: set queues = 2"});
  CHECK(faults_of(edited("workers = 1", "workers = 3")).size() == 2);
}

TEST_CASE("a faulty number of queues is one fault, whatever the workers need") {
  for (const std::string written : {"queues = 0", "queues = 4096", "queues = \"2\""}) {
    CAPTURE(written);
    std::string text = edited("workers = 1", "workers = 2");
    const std::string good = "queues = 2";
    const auto faults = faults_of(text.replace(text.find(good), good.size(), written));
    REQUIRE(faults.size() == 2);  // of this port, and of the other one, which has one queue
    CHECK(faults[0].find("h.toml:5:54: \"queues\"") == 0);
    CHECK(faults[1].find("port \"cap\" has fewer queues") != std::string::npos);
  }
}

TEST_CASE("names are fit for a command line") {
  const std::string long_name(65, 'x');
  for (const std::string name : {"a b", "a/b", "", "\xc3\xa9", "x\\ty", long_name.c_str()}) {
    INFO(name);
    const auto faults =
        parse_config(edited("name = \"alive\"", "name = \"" + name + '"'), "h").faults;
    REQUIRE(!faults.empty());
    CHECK(faults.back().line == 37);
    CHECK(faults.back().message.find("must be 1 to 64 letters") != std::string::npos);
  }
}

TEST_CASE("a long or strange text is cut and escaped in a fault") {
  const auto faults = faults_of(
      edited("\"2001:db8::10\"\n\n", std::string{"\""} + std::string(100, 'x') + "\"\n\n"));
  REQUIRE(faults.size() == 2);
  CHECK(faults[0] ==
        "h.toml:14:11: \"" + std::string(64, 'x') + "...\" is not an IPv4 or IPv6 address");
  CHECK(faults_of(edited("name = \"fra1\"", "name = \"\\u001b[2J\"")).at(0).find("\\x1b[2J") !=
        std::string::npos);
}

TEST_CASE("no text of a config file may have a control character, whatever it is for") {
  const std::pair<std::string_view, std::string_view> rows[] = {
      {"name = \"fra1\"", "\"fra1"},
      {"interface = \"eth1\"", "\"eth1"},
      {"vdev = \"net_pcap0,rx_pcap=in.pcap\"", "\"net_pcap0,rx_pcap=in.pcap"},
      {"interface = \"eth1\"", "\"0000:03:00.1"},
      {"hash_seed_file = \"seed\"", "\"seed"},
      {"address = \"203.0.113.10\"", "\"203.0.113.10"},
      {"vips = [\"203.0.113.10\"]", "\"203.0.113.10"},
      {"protocol = \"udp\"", "\"udp"},
      {"ports = \"443\"", "\"443"},
      {"pool = \"proxies\"\ntimeouts", "\"proxies"},
      {"timeouts = { udp = \"30s\" }", "\"30s"},
      {"check = \"alive\"", "\"alive"},
      {"name = \"b1\"", "\"b1"},
      {"address = \"192.0.2.21\"", "\"192.0.2.21"},
      {"[[check]]", "[control]\nsocket = \"h.sock"},
      {"weight = 0", "next_hop = { mac = \"02:00:00:00:00:01\", port = \"cap"},
      {"weight = 0", "next_hop = { port = \"cap\", mac = \"02:00:00:00:00:01"},
  };
  for (const auto& [before, text] : rows) {
    for (const auto* control : {"\\u0000", "\\n", "\\u001b[2J", "\\u007f", "\\u0085"}) {
      // The key, its value with the control character at the end, and what followed the value.
      std::string after{before};
      if (before == "[[check]]") {
        after = std::string{text} + control + "\"\n[[check]]";
      } else if (before == "weight = 0") {
        after = std::string{text} + control + "\" }";
      } else if (text == "\"0000:03:00.1") {
        after = "pci = " + std::string{text} + control + '"';
      } else {
        const auto at = after.find(text);
        REQUIRE(at != std::string::npos);
        after.insert(at + text.size(), control);
      }
      INFO(after);
      const auto faults = parse_config(edited(before, after), "h.toml").faults;
      REQUIRE_FALSE(faults.empty());
      CHECK(faults.front().line > 0);
      for (const auto& fault : faults) CHECK(find_control(fault.text()).empty());
    }
  }
  check_edits({
      {"hash_seed_file = \"seed\"", "hash_seed_file = \"se\\u0000ed\"",
       "h.toml:8:18: \"hash_seed_file\" has the control character \\x00 in it: \"se\\x00ed\""},
      {"[[check]]", "[control]\nsocket = \"a\\nb\"\n[[check]]",
       "h.toml:37:10: \"socket\" has the control character \\x0a in it: \"a\\x0ab\""},
      {"vips = [\"203.0.113.10\"]", "vips = [\"203.0.113.10\", \"\\u0085\"]",
       "h.toml:24:25: \"vips\" has the control character \\xc2\\x85 in it: \"\\xc2\\x85\""},
  });
}

TEST_CASE("a path for a file or socket that can only be a folder is refused") {
  check_edits({
      {"hash_seed_file = \"seed\"", "hash_seed_file = \"/etc/holdfast/\"",
       "h.toml:8:18: \"hash_seed_file\" must name a file, not a folder"},
      {"[[check]]", "[control]\nsocket = \"/run/holdfast/..\"\n[[check]]",
       "h.toml:37:10: \"socket\" must be the path of a socket, not of a folder"},
      {"[[check]]", "[control]\nsocket = \"\"\n[[check]]",
       "h.toml:37:10: \"socket\" must be the path of a socket"},
  });
}

TEST_CASE("the config file's own name is escaped in a fault") {
  CHECK(parse_config("x = 1", "a\nb.toml").faults.at(0).text().starts_with("a\\x0ab.toml: "));
}

TEST_CASE("an address that no host can have is refused") {
  const std::pair<const char*, const char*> rows[] = {
      {"0.0.0.0", "is the unspecified address"},
      {"::", "is the unspecified address"},
      {"127.0.0.1", "is a loopback address"},
      {"::1", "is a loopback address"},
      {"224.0.0.1", "is a multicast address"},
      {"ff02::1", "is a multicast address"},
      {"169.254.1.1", "is a link-local address"},
      {"fe80::1", "is a link-local address"},
      {"255.255.255.255", "is a reserved address"},
      {"0.1.2.3", "is an address of \"this network\""},
      {"::ffff:192.0.2.1", "is an IPv4 address in IPv6 form (write it as IPv4)"},
      {"192.0.2.300", "is not an IPv4 or IPv6 address"},
      {"192.0.2.0/24", "is not an IPv4 or IPv6 address"},
      {"b1.example.net", "is not an IPv4 or IPv6 address"},
  };
  for (const auto& [address, why] : rows) {
    INFO(address);
    const auto quoted = std::string{"\""} + address + '"';
    CHECK(faults_of(edited("\"192.0.2.21\"", quoted)) ==
          std::vector<std::string>{"h.toml:33:38: " + quoted + ' ' + why});
  }
}

TEST_CASE("names and addresses that appear twice are reported at the second place") {
  check_edits({
      {"address = \"2001:db8::10\"\n",
       "address = \"2001:db8::10\"\n[[vip]]\naddress = \"203.0.113.10\"\n",
       "h.toml:16:11: VIP 203.0.113.10 is in line 11 already"},
      {"name = \"media\"", "name = \"web\"",
       "h.toml:23:8: there is another service \"web\" in line 17"},
      {"name = \"alive\"\n", "name = \"alive\"\n[[check]]\nname = \"alive\"\n",
       "h.toml:39:8: there is another check \"alive\" in line 37"},
      {"name = \"alive\"\n", "name = \"alive\"\n[[pool]]\nname = \"proxies\"\nbackends = []\n",
       "h.toml:39:8: there is another pool \"proxies\" in line 31"},
      {"\"2001:db8:1::22\"", "\"192.0.2.21\"",
       "h.toml:34:25: backend 192.0.2.21 is in pool \"proxies\" already (line 33)"},
      {"{ address = \"2001:db8:1::22\"", "{ name = \"b1\", address = \"2001:db8:1::22\"",
       "h.toml:34:22: the name \"b1\" belongs to backend 192.0.2.21 already"},
      {"name = \"b1\"", "name = \"192.0.2.99\"",
       "h.toml:33:22: backend 192.0.2.21 can not be named after another address, \"192.0.2.99\""},
      {"vips = [\"203.0.113.10\"]", "vips = [\"203.0.113.10\", \"203.0.113.10\"]",
       "h.toml:24:25: VIP 203.0.113.10 is in the list already"},
  });
}

TEST_CASE("one backend may be in several pools, under one name") {
  const std::string other = "[[pool]]\nname = \"second\"\nbackends = [{ name = \"b1\", address = ";
  good_config(std::string{kGood} + other + "\"192.0.2.21\" }]\n");
  CHECK(faults_of(std::string{kGood} + other + "\"192.0.2.22\" }]\n") ==
        std::vector<std::string>{
            "h.toml:40:22: the name \"b1\" belongs to backend 192.0.2.21 already"});
}

TEST_CASE("a VIP is neither a backend nor the tunnels' source") {
  check_edits({
      {"\"192.0.2.21\"", "\"203.0.113.10\"",
       "h.toml:33:38: 203.0.113.10 can not be a backend: it is a VIP (line 11)"},
      {"workers = 1", "workers = 1\ntunnel_source_v6 = \"2001:db8::10\"",
       "h.toml:8:20: 2001:db8::10 can not be the tunnels' source: it is a VIP (line 15)"},
      {"workers = 1", "workers = 1\ntunnel_source_v4 = \"2001:db8::1\"",
       "h.toml:8:20: \"tunnel_source_v4\" must be an IPv4 address, not \"2001:db8::1\""},
  });
}

TEST_CASE("the load balancer's own address is no backend") {
  check_edits({
      {"workers = 1", "workers = 1\ntunnel_source_v4 = \"192.0.2.21\"",
       "h.toml:34:38: 192.0.2.21 can not be a backend: it is this load balancer's own address, the "
       "tunnels' source (line 8)"},
      {"workers = 1", "workers = 1\ntunnel_source_v6 = \"2001:0db8:1:0::22\"",
       "h.toml:35:25: 2001:db8:1::22 can not be a backend: it is this load balancer's own address, "
       "the tunnels' source (line 8)"},
  });
}

TEST_CASE("what is referred to must exist") {
  check_edits({
      {"pool = \"proxies\"\ntimeouts", "pool = \"proxis\"\ntimeouts",
       "h.toml:27:8: there is no pool \"proxis\"; did you mean \"proxies\"?"},
      {"check = \"alive\"", "check = \"http\"", "h.toml:32:9: there is no check \"http\""},
      {"check = \"alive\"", "check = \"\"",
       "h.toml:32:9: \"check\" must name a [[check]]; leave it out if pool \"proxies\" is not to "
       "be "
       "checked"},
      {"vips = [\"203.0.113.10\"]", "vips = [\"203.0.113.11\"]",
       "h.toml:24:9: 203.0.113.11 is not a VIP: there is no [[vip]] with this address"},
      {"pool = \"proxies\"\ntimeouts", "pool = \"\"\ntimeouts",
       "h.toml:27:8: there is no pool \"\""},
      {"weight = 0", "next_hop = { port = \"\", mac = \"02:00:00:00:00:01\" }",
       "h.toml:34:63: there is no port \"\""},
      {"weight = 0", "next_hop = { port = \"cup\", mac = \"02:00:00:00:00:01\" }",
       "h.toml:34:63: there is no port \"cup\"; did you mean \"up\"?"},
  });
}

TEST_CASE("a next hop needs a port and one host's MAC address") {
  check_edits({
      {"weight = 0", "next_hop = { mac = \"02:00:00:00:00:01\" }",
       "h.toml:34:54: the next hop of backend 2001:db8:1::22 of pool \"proxies\" needs "
       "\"port\": "
       "the name of a port of [dataplane]"},
      {"weight = 0", "next_hop = { port = \"cap\" }",
       "h.toml:34:54: the next hop of backend 2001:db8:1::22 of pool \"proxies\" needs "
       "\"mac\""},
      {"weight = 0", "next_hop = { port = \"cap\", mac = \"02:00\" }",
       "h.toml:34:76: \"02:00\" is not a MAC address such as \"02:00:5e:10:00:01\""},
      {"weight = 0", "next_hop = { port = \"cap\", mac = \"ff:ff:ff:ff:ff:ff\" }",
       "h.toml:34:76: \"ff:ff:ff:ff:ff:ff\" can not be one host's MAC address"},
      {"weight = 0", "next_hop = { port = \"cap\", mac = \"02:00:00:00:00:01\", vlan = 4095 }",
       "h.toml:34:104: \"vlan\" must be 0 to 4094, not 4095"},
      {"weight = 0", "next_hop = { port = \"cap\", mac = \"02:00:00:00:00:01\", mtu = 100 }",
       "h.toml:34:103: \"mtu\" must be 576 to 65535, not 100"},
  });
}

TEST_CASE("without a port on a kernel interface each backend needs a next hop") {
  const auto vdev = edited("interface = \"eth1\", queues = 2", "vdev = \"net_memif0\"");
  CHECK(faults_of(vdev) ==
        std::vector<std::string>{
            "h.toml:33:13: backend \"b1\" of pool \"proxies\" needs a \"next_hop\": no port is a "
            "kernel interface, so no route leads to it",
            "h.toml:34:13: backend \"2001:db8:1::22\" of pool \"proxies\" needs a \"next_hop\": no "
            "port is a kernel interface, so no route leads to it"});
  // One kernel interface is enough, and a port without any device is a fault of its own.
  CHECK(faults_of(kGood).empty());
  CHECK(faults_of(edited("interface = \"eth1\", ", "")).size() == 1);
}

TEST_CASE("a tunnel by a next hop of the configuration needs a source of the backend's family") {
  const std::string hop = "next_hop = { port = \"cap\", mac = \"02:00:00:00:00:01\" }";
  const auto text = edited("weight = 0", hop);
  CHECK(faults_of(text) ==
        std::vector<std::string>{
            "h.toml:34:54: [dataplane] needs \"tunnel_source_v6\": backend \"2001:db8:1::22\" of "
            "pool \"proxies\" has a \"next_hop\", so no interface gives its tunnel a source"});
  const auto with = [&](std::string_view source) {
    auto changed = text;
    return changed.insert(changed.find("hash_seed_file"), std::string{source} + "\n");
  };
  CHECK(faults_of(with("tunnel_source_v6 = \"2001:db8:1::1\"")).empty());
  CHECK(faults_of(with("tunnel_source_v4 = \"192.0.2.1\"")).size() == 1);
  // Of several backends one is named: one key mends all.
  auto two = text;
  two.replace(two.find("{ address = \"2001"), 1,
              "{ address = \"2001:db8:1::23\", " + hop + " }, {");
  CHECK(faults_of(two).size() == 1);
}

TEST_CASE("services may not claim the same port, nor overlapping ranges") {
  const auto with = [](std::string_view ports, std::string_view protocol) {
    return std::string{kGood} +
           "[[service]]\nname = \"more\"\nvips = [\"203.0.113.10\"]\npool = \"proxies\"\n" +
           "protocol = \"" + std::string{protocol} + "\"\nports = \"" + std::string{ports} + "\"\n";
  };
  using List = std::vector<std::string>;
  CHECK(
      faults_of(with("443", "tcp")) ==
      List{"h.toml:43:9: TCP port 443 of VIP 203.0.113.10 belongs to service \"web\" already (port "
           "443, line 19)"});
  CHECK(faults_of(with("443-443", "tcp")).size() == 1);
  CHECK(
      faults_of(with("8999-9005", "udp")) ==
      List{"h.toml:43:9: UDP ports 8999-9005 of VIP 203.0.113.10 overlap service \"media\" already "
           "(ports 8000-8999, line 26)"});
  CHECK(faults_of(with("8100-8200", "udp")).size() == 1);
  CHECK(faults_of(with("1-65535", "udp")).size() == 1);
  // The narrower of two kinds wins, so these are meant.
  CHECK(faults_of(with("8000", "udp")).empty());
  CHECK(faults_of(with("any", "tcp")).empty());
  CHECK(faults_of(with("443", "udp")).empty());
  CHECK(faults_of(with("9000-9005", "udp")).empty());
}

TEST_CASE("a wide range is compared with all that lie inside it") {
  std::string text{kGood};
  for (const auto* ports : {"1000-5000", "1100-1200", "1300-1400", "any", "any"})
    text += std::string{"[[service]]\nname = \"s"} + std::to_string(text.size()) +
            "\"\nvips = [\"2001:db8::10\"]\npool = \"proxies\"\nports = \"" + ports + "\"\n";
  const auto faults = faults_of(text);
  REQUIRE(faults.size() == 3);
  CHECK(faults[0].starts_with("h.toml:47:9: TCP ports 1100-1200"));
  CHECK(faults[1].starts_with("h.toml:52:9: TCP ports 1300-1400"));
  CHECK(faults[2].starts_with("h.toml:62:9: TCP any port of VIP 2001:db8::10 belongs to"));
}

TEST_CASE("a check takes its port from the first service that uses the pool") {
  const auto config = good_config(kGood);
  CHECK(config.check_port(config.pools[0]) == 443);
  CHECK(good_config(edited("name = \"alive\"", "name = \"alive\"\nport = 9"))
            .check_port(config.pools[0]) == 9);
  CHECK(faults_of(edited("\"443\"", "\"any\"")) ==
        std::vector<std::string>{
            "h.toml:32:9: check \"alive\" needs a \"port\": service \"web\", the first "
            "that uses pool \"proxies\", has ports = \"any\""});
  CHECK(faults_of(std::string{kGood} +
                  "[[pool]]\nname = \"idle\"\ncheck = \"alive\"\nbackends = []\n") ==
        std::vector<std::string>{
            "h.toml:40:9: check \"alive\" needs a \"port\": no service uses pool "
            "\"idle\", so there is none to take it from"});
}

TEST_CASE("udp_on_drain belongs to UDP services") {
  check_edits(
      {{"ports = \"443\"", "ports = \"443\"\nudp_on_drain = \"keep\"",
        "h.toml:20:16: \"udp_on_drain\" is for services with protocol = \"udp\"; service \"web\" "
        "has \"tcp\""}});
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

TEST_CASE("a pool's table has a slot for every backend") {
  CHECK(faults_of(edited("check = \"alive\"", "check = \"alive\"\ntable_size = 2")).empty());
  std::string text{kGood};
  text +=
      "[[pool]]\nname = \"q\"\ntable_size = 2\nbackends = [{ address = \"192.0.2.1\" }, { address "
      "= "
      "\"192.0.2.2\" }, { address = \"192.0.2.3\" }]\n";
  CHECK(faults_of(text) ==
        std::vector<std::string>{
            "h.toml:40:14: pool \"q\" has 3 backends but a table of only 2 slots"});
}

TEST_CASE("a socket's path fits into a socket address") {
  const auto text = std::string{kGood} + "[control]\nsocket = \"" + std::string(200, 's') + "\"\n";
  const auto faults = parse_config(text, "/etc/h.toml").faults;
  REQUIRE(faults.size() == 1);
  CHECK(faults[0].line == 39);
  CHECK(faults[0].message.find("has 205 bytes; at most 107 are possible") != std::string::npos);
}

TEST_CASE("hostile texts are faults, never crashes") {
  CHECK(faults_of("name = \"\xff\"").size() == 1);
  CHECK(faults_of("\xc3").size() == 1);
  CHECK(faults_of(std::string(3, '\0')).size() == 1);
  CHECK(faults_of(std::string(17 * 1024 * 1024, ' ')) ==
        std::vector<std::string>{"h.toml: the file has 17825792 bytes; at most 16777216 are read"});
  CHECK(faults_of(std::string(100'000, '[')).size() == 1);
  CHECK(faults_of(std::string{"a = "} + std::string(100'000, '[')).size() == 1);
  std::string nested;
  for (int i = 0; i < 100'000; ++i) nested += "{a=";
  CHECK(faults_of("a = " + nested).size() == 1);
  std::string endless = "\n  a";
  for (int i = 0; i < 1'000'000; ++i) endless += ".a";
  CHECK(faults_of(endless + " = 1") ==
        std::vector<std::string>{"h.toml:2:132: a key with more than 64 parts"});
  CHECK(faults_of("[" + endless.substr(3) + "]").size() == 1);
}

TEST_CASE("a ruler of dots in a comment is no endless key") {
  good_config(std::string{"# "} + std::string(300, '.') + "\n" + std::string{kGood});
}

TEST_CASE("a hopeless file brings a bounded list of faults") {
  std::string text{kGood};
  for (int i = 0; i < 5000; ++i) text += "k" + std::to_string(i) + " = 1\n";
  const auto faults = faults_of(text);
  REQUIRE(faults.size() == 1001);
  CHECK(faults.back() == "h.toml: 4000 more faults are not shown");
}

TEST_CASE("a duration that is too long for the clock means for ever, not at once") {
  for (const auto* text : {"2562048h", "99999999999h", "9223372036855000ms", "2562047788015h"}) {
    CAPTURE(text);
    const auto duration = parse_duration(text);
    REQUIRE(duration == kLongestDuration);
    const Instant up_for_years = std::chrono::hours(24 * 365 * 20);
    CHECK(up_for_years + *duration > up_for_years);
  }
}

TEST_CASE("durations are a whole number and one unit") {
  CHECK(parse_duration("250ms") == 250ms);
  CHECK(parse_duration("10s") == 10s);
  CHECK(parse_duration("15m") == 15min);
  CHECK(parse_duration("2h") == 2h);
  CHECK(parse_duration("0s") == 0s);
  CHECK(parse_duration("876600h") == kLongestDuration);
  for (const auto* text : {"", "10", "s", "-1s", "+1s", "1.5s", "1 s", " 1s", "1s ", "1h30m", "1d",
                           "1S", "2562047788016h", "99999999999999999999s", "0x10s"})
    CHECK(!parse_duration(text));
  CHECK(!parse_duration(std::string_view{"1s\0", 3}));
}

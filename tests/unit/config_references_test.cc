// SPDX-License-Identifier: Apache-2.0
// What keys of a configuration must be to each other.
#include "tests/unit/config_text.h"

using namespace holdfast;
using namespace holdfast::config_text;

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

TEST_CASE("udp = stateless belongs to UDP services, and leaves nothing to keep on a drain") {
  CHECK(good_config(edited("protocol = \"udp\"", "protocol = \"udp\"\nudp = \"stateless\""))
            .services[1]
            .stateless);
  CHECK_FALSE(good_config(edited("protocol = \"udp\"", "protocol = \"udp\"\nudp = \"flow\""))
                  .services[1]
                  .stateless);
  check_edits(
      {{"ports = \"443\"", "ports = \"443\"\nudp = \"flow\"",
        "h.toml:20:7: \"udp\" is for services with protocol = \"udp\"; service \"web\" has "
        "\"tcp\""},
       {"protocol = \"udp\"", "protocol = \"udp\"\nudp_on_drain = \"repick\"\nudp = \"stateless\"",
        "h.toml:26:16: \"udp_on_drain\" does nothing for service \"media\", which has udp = "
        "\"stateless\": each packet goes to a backend that takes new flows"}});
}

TEST_CASE("mss_clamp belongs to TCP services") {
  CHECK(good_config(edited("ports = \"443\"", "ports = \"443\"\nmss_clamp = 1220"))
            .services[0]
            .mss_clamp == 1220);
  CHECK_FALSE(good_config(kGood).services[0].mss_clamp);
  check_edits({{"protocol = \"udp\"", "protocol = \"udp\"\nmss_clamp = 1220",
                "h.toml:26:13: \"mss_clamp\" is for services with protocol = \"tcp\"; service "
                "\"media\" has \"udp\""}});
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

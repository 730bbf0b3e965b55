// SPDX-License-Identifier: Apache-2.0
// What the value of a single key may be, and which keys there must be.
#include "lib/base/instant.h"
#include "lib/base/printable.h"
#include "tests/unit/config_text.h"

using namespace holdfast;
using namespace holdfast::config_text;
using namespace std::chrono_literals;

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
      {"workers = 1", "workers = 1\nclient_mtu = 3401",
       "h.toml:8:14: \"client_mtu\" must be 576 to 3400, not 3401"},
      {"workers = 1", "workers = 1\nclient_mtu = 575",
       "h.toml:8:14: \"client_mtu\" must be 576 to 3400, not 575"},
      {"workers = 1", "workers = 1\nflow_capacity = -1",
       "h.toml:8:17: \"flow_capacity\" must be 1024 to 1000000000, not -1"},
      {"workers = 1", "workers = 1\nicmp_answer_rate = -1",
       "h.toml:8:20: \"icmp_answer_rate\" must be 0 to 1000000000, not -1"},
      {"address = \"2001:db8::10\"", "address = \"2001:db8::10\"\nunknown_port = \"refuse\"",
       "h.toml:15:16: \"unknown_port\" must be \"drop\" or \"reject\", not \"refuse\""},
      {"address = \"2001:db8::10\"", "address = \"2001:db8::10\"\necho = \"no\"",
       "h.toml:15:8: \"echo\" must be true or false, not a string"},
      {"weight = 0", "weight = 1001", "h.toml:34:52: \"weight\" must be 0 to 1000, not 1001"},
      {"udp = \"30s\"", "udp = \"121h\"", "h.toml:28:20: \"udp\" must be 1s to 120h, not \"121h\""},
      {"udp = \"30s\"", "embryonic = \"0s\"",
       "h.toml:28:26: \"embryonic\" must be 1s to 120h, not \"0s\""},
      {"udp = \"30s\"", "established = \"121h\"",
       "h.toml:28:28: \"established\" must be 1s to 120h, not \"121h\""},
      {"udp = \"30s\"", "closing = \"7201m\"",
       "h.toml:28:24: \"closing\" must be 1s to 120h, not \"7201m\""},
      {"ports = \"443\"", "ports = \"443\"\nembryonic_share = 0",
       "h.toml:20:19: \"embryonic_share\" must be above 0 and at most 1, not 0"},
      {"udp = \"30s\"", "udp = \"1500ms\"", "h.toml:28:20: \"udp\" must be whole seconds"},
      {"udp = \"30s\"", "udp = \"30\"",
       "h.toml:28:20: \"udp\" must be a duration such as \"250ms\", \"10s\", \"15m\" or \"2h\", "
       "not "
       "\"30\""},
      {"protocol = \"udp\"", "protocol = \"sctp\"",
       "h.toml:25:12: \"protocol\" must be \"tcp\" or \"udp\", not \"sctp\""},
      {"ports = \"443\"", "ports = \"443\"\nmss_clamp = 535",
       "h.toml:20:13: \"mss_clamp\" must be 536 to 8960, not 535"},
      {"ports = \"443\"", "ports = \"443\"\nmss_clamp = 8961",
       "h.toml:20:13: \"mss_clamp\" must be 536 to 8960, not 8961"},
      {"ports = \"443\"", "ports = \"443\"\nmax_share = 0",
       "h.toml:20:13: \"max_share\" must be above 0 and at most 1, not 0"},
      {"ports = \"443\"", "ports = \"443\"\nmax_share = nan",
       "h.toml:20:13: \"max_share\" must be above 0 and at most 1, not nan"},
      {"ports = \"443\"", "ports = \"443\"\nembryonic_share = 1.01",
       "h.toml:20:19: \"embryonic_share\" must be above 0 and at most 1, not 1.01"},
      {"check = \"alive\"", "check = \"alive\"\nencapsulation = \"vxlan\"",
       "h.toml:33:17: \"encapsulation\" must be \"ipip\", \"gre\", \"gue\" or \"gue0\", not "
       "\"vxlan\""},
      {"check = \"alive\"", "check = \"alive\"\ndscp = 64",
       "h.toml:33:8: \"dscp\" must be \"copy\" or 0 to 63, not 64"},
      {"check = \"alive\"", "check = \"alive\"\ndscp = \"EF\"",
       "h.toml:33:8: \"dscp\" must be \"copy\" or 0 to 63, not \"EF\""},
      {"check = \"alive\"", "check = \"alive\"\ndscp = true",
       "h.toml:33:8: \"dscp\" must be \"copy\" or 0 to 63, not a boolean"},
      {"check = \"alive\"", "check = \"alive\"\nudp6_checksum = false",
       "h.toml:33:17: \"udp6_checksum\" is for pools with encapsulation = \"gue\" or \"gue0\"; "
       "pool \"proxies\" has \"ipip\""},
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

TEST_CASE("a socket's path fits into a socket address") {
  const auto text = std::string{kGood} + "[control]\nsocket = \"" + std::string(200, 's') + "\"\n";
  const auto faults = parse_config(text, "/etc/h.toml").faults;
  REQUIRE(faults.size() == 1);
  CHECK(faults[0].line == 39);
  CHECK(faults[0].message.find("has 205 bytes; at most 107 are possible") != std::string::npos);
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

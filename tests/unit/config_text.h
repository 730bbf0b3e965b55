// SPDX-License-Identifier: Apache-2.0
// A good configuration and edits of it: each test changes one thing and looks at the faults.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/config/config.h"
#include "tests/catch.h"

namespace holdfast::config_text {

// Line numbers matter: the faults below name them.
inline constexpr std::string_view kGood = R"([site]
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

inline std::vector<std::string> faults_of(std::string_view text) {
  std::vector<std::string> result;
  for (const auto& fault : parse_config(text, "h.toml").faults) result.push_back(fault.text());
  return result;
}

/// kGood with the one occurrence of `before` replaced.
inline std::string edited(std::string_view before, std::string_view after) {
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
inline void check_edits(const std::vector<Edit>& edits) {
  for (const auto& edit : edits) {
    INFO("replace: " << edit.before << "\nby: " << edit.after);
    CHECK(faults_of(edited(edit.before, edit.after)) ==
          std::vector<std::string>{std::string{edit.fault}});
  }
}

inline Config good_config(std::string_view text, std::string_view file = "h.toml") {
  auto result = parse_config(text, file);
  for (const auto& fault : result.faults) UNSCOPED_INFO(fault.text());
  REQUIRE(result.ok());
  return std::move(result.config);
}

}  // namespace holdfast::config_text

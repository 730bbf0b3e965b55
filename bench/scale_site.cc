// SPDX-License-Identifier: Apache-2.0
#include "bench/scale_site.h"

#include <fmt/format.h>

#include <iterator>
#include <stdexcept>
#include <utility>

namespace holdfast::bench {
namespace {

constexpr HashSeed kSeed{0x5eed};
constexpr std::uint32_t kFirstVip = 198u << 24 | 18u << 16;  // 198.18.0.0, RFC 2544
constexpr std::uint32_t kFirstBackend = 10u << 24 | 1;

IpAddress nth(std::uint32_t first, unsigned number) {
  return IpAddress::v4(Be32::from_host(first + number));
}

}  // namespace

std::string SiteSize::text() const {
  return fmt::format("{} services, {} pools, {} backends", services, pools, backends);
}

std::string site_text(const SiteSize& size) {
  std::string text;
  const auto out = std::back_inserter(text);
  fmt::format_to(out,
                 "[site]\nname = \"large\"\n\n[dataplane]\n"
                 "ports = [{{ name = \"p\", vdev = \"net_null0\" }}]\n"
                 "tunnel_source_v4 = \"192.0.2.1\"\nhash_seed_file = \"seed\"\n");
  for (unsigned i = 0; i < size.services; ++i)
    fmt::format_to(out,
                   "\n[[vip]]\naddress = \"{}\"\n\n[[service]]\nname = \"service-{}\"\n"
                   "vips = [\"{}\"]\nports = \"80\"\npool = \"pool-{}\"\nembryonic_share = 1.0\n",
                   nth(kFirstVip, i).text(), i, nth(kFirstVip, i).text(), i % size.pools);
  const unsigned each = size.backends / size.pools;
  for (unsigned pool = 0; pool < size.pools; ++pool) {
    fmt::format_to(out, "\n[[pool]]\nname = \"pool-{}\"\nbackends = [\n", pool);
    for (unsigned i = 0; i < each; ++i) {
      const unsigned backend = pool * each + i;
      fmt::format_to(out,
                     "  {{ name = \"backend-{}\", address = \"{}\", "
                     "next_hop = {{ mac = \"02:00:00:00:{:02x}:{:02x}\", port = \"p\" }} }},\n",
                     backend, nth(kFirstBackend, backend).text(), backend >> 8 & 0xff,
                     backend & 0xff);
    }
    fmt::format_to(out, "]\n");
  }
  return text;
}

std::vector<IpAddress> site_vips(unsigned services) {
  std::vector<IpAddress> vips;
  for (unsigned i = 0; i < services; ++i) vips.push_back(nth(kFirstVip, i));
  return vips;
}

void Site::parse(const std::string& text) {
  ConfigResult result = parse_config(text, "site.toml");
  if (!result.ok()) throw std::runtime_error("scale: " + result.faults.front().text());
  config_ = std::move(result.config);
}

void Site::follow() {
  PortDescription port;
  port.name = "p";
  port.mac = MacAddress{{2, 0, 0, 0, 0, 1}};
  port.mtu = 1500;
  state_.ports = {port};
  if (const auto done = follow_config(state_, config_, now_); !done)
    throw std::runtime_error("scale: " + done.error().message);
}

void Site::reconcile() {
  result_ = holdfast::reconcile(config_, kSeed, state_, result_.memory, now_);
}

void Site::drain_first(bool drain) {
  auto& first = state_.memberships.begin()->second.drain;
  if (drain)
    first.start(now_, {});
  else
    first.enable();
}

}  // namespace holdfast::bench

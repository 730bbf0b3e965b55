// SPDX-License-Identifier: Apache-2.0
// [bgp], and what it must say for the VIPs that are announced.
#include <fmt/format.h>

#include <algorithm>

#include "lib/config/sections.h"
#include "lib/config/values.h"

namespace holdfast::config {
namespace {

constexpr std::string_view kUnix = "unix:";

/// gRPC reads the target as a URI and would connect to another path than the one that was meant:
/// after `?` and `#` something else begins, `%20` is a space, `//` leads to a host. What a path may
/// have as it is: RFC 3986 section 3.3.
bool stays_in_uri(std::string_view path) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~!$&'()*+,;=:@/";
  return path.find_first_not_of(kAllowed) == std::string_view::npos && !path.starts_with("//");
}

void parse_target(TableReader& reader, Parse& parse, std::string& target) {
  const auto text = reader.text("gobgp");
  if (!text) return;
  if (!text->starts_with(kUnix)) {
    if (!is_host_and_port(*text))
      reader.fault("gobgp", fmt::format("\"gobgp\" must be \"HOST:PORT\" or \"unix:/PATH\", where "
                                        "gobgpd's gRPC API listens, not {}",
                                        in_quotes(*text)));
    target = *text;
    return;
  }
  const auto path = text->substr(kUnix.size());
  const auto resolved = parse.resolve(path);
  if (names_a_folder(path))
    reader.fault("gobgp", "\"gobgp\" must name a socket after \"unix:\"");
  else if (resolved.size() > kMaxSocketPath)
    reader.fault("gobgp", fmt::format("the socket's path {} has {} bytes; at most {} are possible",
                                      in_quotes(resolved), resolved.size(), kMaxSocketPath));
  else if (!stays_in_uri(resolved))
    reader.fault("gobgp", fmt::format("the socket's path {} is read as a URI: letters, digits and "
                                      "-._~!$&'()*+,;=:@ are possible between single slashes",
                                      in_quotes(resolved)));
  target = std::string{kUnix} + resolved;
}

/// Every announced VIP of a family needs a next hop of the family: with none, gobgpd would announce
/// one that breaks the VIP's route for all load balancers.
void require_next_hop(const Parse& parse, Family family, std::string_view key) {
  const auto& vips = parse.config.vips;
  const auto vip = std::find_if(vips.begin(), vips.end(), [&](const VipConfig& candidate) {
    return candidate.announce && candidate.address.family() == family;
  });
  if (vip == vips.end()) return;
  parse.faults.add(parse.places.bgp,
                   fmt::format("[bgp] needs \"{}\", an IPv{} address at which routers reach this "
                               "host: VIP {} is announced with it",
                               key, family == Family::ipv4 ? 4 : 6, vip->address.text()));
}

}  // namespace

void parse_bgp(TableReader& root, Parse& parse) {
  const auto* table = root.table("bgp");
  if (table == nullptr) return;
  TableReader reader{*table, "[bgp]", parse.faults};
  BgpConfig bgp;
  if (const auto mode = reader.choice<BgpMode>("mode", {{"external", BgpMode::external}}))
    bgp.mode = *mode;
  parse_target(reader, parse, bgp.gobgp);
  bgp.next_hop = reader.address("next_hop", Family::ipv4);
  bgp.next_hop_v6 = reader.address("next_hop_v6", Family::ipv6);
  reader.finish();
  // A next hop that is faulty is not missing, too.
  parse.places.bgp = reader.place();
  parse.places.next_hop = reader.place("next_hop");
  parse.places.next_hop_v6 = reader.place("next_hop_v6");
  parse.config.bgp = std::move(bgp);
}

void check_bgp(Parse& parse) {
  if (!parse.config.bgp) return;
  if (!parse.places.next_hop.known()) require_next_hop(parse, Family::ipv4, "next_hop");
  if (!parse.places.next_hop_v6.known()) require_next_hop(parse, Family::ipv6, "next_hop_v6");
}

}  // namespace holdfast::config

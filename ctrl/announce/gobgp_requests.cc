// SPDX-License-Identifier: Apache-2.0
#include "ctrl/announce/gobgp_requests.h"

#include <fmt/format.h>

#include "attribute.pb.h"

namespace holdfast::gobgp {
namespace {

void set_family(apipb::Family& message, Family family) {
  message.set_afi(family == Family::ipv4 ? apipb::Family::AFI_IP : apipb::Family::AFI_IP6);
  message.set_safi(apipb::Family::SAFI_UNICAST);
}

[[nodiscard]] apipb::IPAddressPrefix host_route(const IpAddress& vip) {
  apipb::IPAddressPrefix prefix;
  prefix.set_prefix(vip.text());
  prefix.set_prefix_len(host_length(vip.family()));
  return prefix;
}

/// An address that a packet can be sent to by a router's table.
[[nodiscard]] bool is_unicast(const IpAddress& address) {
  return !address.is_unspecified() && !address.is_multicast() && !address.is_loopback() &&
         !address.is_reserved_v4();
}

template <class Message>
void add_attribute(apipb::Path& path, const Message& message) {
  path.add_pattrs()->PackFrom(message);
}

}  // namespace

Result<apipb::AddPathRequest> add_request(const Announcement& announcement, std::uint32_t own_as) {
  const IpAddress& vip = announcement.vip;
  const IpAddress& next_hop = announcement.next_hop;
  if (!is_unicast(vip)) return fail(fmt::format("{} can not be announced", vip.text()));
  if (!is_unicast(next_hop) || next_hop.family() != vip.family())
    return fail(
        fmt::format("{} can not be announced with the next hop {}", vip.text(), next_hop.text()));
  if (announcement.prepend > 0 && own_as == 0)
    return fail(fmt::format("{} can not be prepended while our AS is unknown", vip.text()));

  apipb::AddPathRequest request;
  request.set_table_type(apipb::GLOBAL);
  apipb::Path& path = *request.mutable_path();
  set_family(*path.mutable_family(), vip.family());
  path.mutable_nlri()->PackFrom(host_route(vip));
  add_attribute(path, apipb::OriginAttribute());  // IGP
  if (announcement.prepend > 0) {
    // The speaker adds its AS once more when it sends to an external peer.
    apipb::AsPathAttribute as_path;
    auto& segment = *as_path.add_segments();
    segment.set_type(apipb::AsSegment::AS_SEQUENCE);
    for (int i = 0; i < announcement.prepend; ++i) segment.add_numbers(own_as);
    add_attribute(path, as_path);
  }
  if (vip.is_v4()) {
    apipb::NextHopAttribute attribute;
    attribute.set_next_hop(next_hop.text());
    add_attribute(path, attribute);
  } else {
    apipb::MpReachNLRIAttribute attribute;
    set_family(*attribute.mutable_family(), Family::ipv6);
    attribute.add_next_hops(next_hop.text());
    attribute.add_nlris()->PackFrom(host_route(vip));
    add_attribute(path, attribute);
  }
  if (announcement.med) {
    apipb::MultiExitDiscAttribute attribute;
    attribute.set_med(*announcement.med);
    add_attribute(path, attribute);
  }
  if (!announcement.communities.empty()) {
    apipb::CommunitiesAttribute attribute;
    for (const std::uint32_t community : announcement.communities)
      attribute.add_communities(community);
    add_attribute(path, attribute);
  }
  return request;
}

Result<apipb::DeletePathRequest> delete_request(const IpAddress& vip) {
  if (!is_unicast(vip)) return fail(fmt::format("{} can not be withdrawn", vip.text()));
  apipb::DeletePathRequest request;
  request.set_table_type(apipb::GLOBAL);
  set_family(*request.mutable_family(), vip.family());
  apipb::Path& path = *request.mutable_path();
  set_family(*path.mutable_family(), vip.family());
  path.mutable_nlri()->PackFrom(host_route(vip));
  path.set_is_withdraw(true);
  return request;
}

apipb::ListPathRequest rib_request(Family family, const std::vector<IpAddress>& vips) {
  apipb::ListPathRequest request;
  request.set_table_type(apipb::GLOBAL);
  set_family(*request.mutable_family(), family);
  for (const IpAddress& vip : vips) {
    // With its length: for a bare address gobgpd answers with the longest match.
    request.add_prefixes()->set_prefix(fmt::format("{}/{}", vip.text(), host_length(family)));
  }
  return request;
}

apipb::ListPathRequest sent_request(const IpAddress& peer, Family family,
                                    const std::vector<IpAddress>& vips) {
  apipb::ListPathRequest request = rib_request(family, vips);
  request.set_table_type(apipb::ADJ_OUT);
  request.set_name(peer.text());
  return request;
}

}  // namespace holdfast::gobgp

// SPDX-License-Identifier: Apache-2.0
// Any bytes as an answer of gobgpd: what is taken from them must be a VIP that was asked for, with
// a next hop of its family, and what is said about the rest must be fit for a log.
#include <cstdint>
#include <cstdlib>

#include "ctrl/announce/gobgp_answers.h"
#include "lib/base/printable.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace holdfast;
  [[maybe_unused]] static const bool silent = (gobgp::silence_protobuf(), true);
  const int length = static_cast<int>(size);
  const gobgp::Leave leave = [](gobgp::Oddity, const std::string& detail) {
    if (detail.size() > 300 || printable(detail, 1000) != detail) std::abort();
  };
  if (apipb::ListPathResponse paths; paths.ParseFromArray(data, length)) {
    for (const Family family : {Family::ipv4, Family::ipv6}) {
      const bool v4 = family == Family::ipv4;
      const IpAddress vip = *IpAddress::parse(v4 ? "203.0.113.10" : "2001:db8:203::10");
      const gobgp::Asked asked{.family = family, .vips = {vip}, .own_as = v4 ? 64512U : 0U};
      for (const auto& found : gobgp::read_rib(paths.destination(), asked, leave)) {
        if (found.vip != vip || found.next_hop.family() != family) std::abort();
        if (found.next_hop.is_unspecified()) std::abort();
      }
      const auto sent = gobgp::read_sent(paths.destination(), asked, leave);
      if (sent && *sent != vip) std::abort();
    }
  }
  if (apipb::ListPeerResponse peers; peers.ParseFromArray(data, length)) {
    const auto peer = gobgp::read_peer(peers.peer(), leave);
    if (peer && !peer->established && (peer->ipv4 || peer->ipv6)) std::abort();
  }
  if (apipb::GetBgpResponse bgp; bgp.ParseFromArray(data, length)) {
    if (gobgp::read_identity(bgp).router_id.size() > 300) std::abort();
  }
  return 0;
}

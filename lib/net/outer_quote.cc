// SPDX-License-Identifier: Apache-2.0
#include "lib/net/outer_quote.h"

#include "lib/net/checksum.h"
#include "lib/net/ip_walk.h"

namespace holdfast {
namespace {

using Read = tl::expected<OuterQuote, OuterQuoteFault>;

tl::unexpected<OuterQuoteFault> fault(OuterQuoteFault why) {
  return tl::unexpected<OuterQuoteFault>(why);
}

/// The packet that is quoted. `mtu`: what the router said.
Read read_quote(std::span<const std::uint8_t> quote, const IpWalk& walk, Family family,
                std::uint32_t mtu) {
  // What we send is never fragmented, and a packet that is no longer than the MTU fits.
  // (An IPv6 packet may be up to 65,575 bytes long, an MTU here is up to 65,535.)
  if (!walk.good || walk.part != FragmentPart::whole || walk.length <= mtu || mtu > 0xffff)
    return fault(OuterQuoteFault::malformed);
  if (mtu < least_path_mtu(family)) return fault(OuterQuoteFault::mtu_too_small);
  OuterQuote read{.protocol = walk.protocol, .mtu = static_cast<std::uint16_t>(mtu)};
  if (family == Family::ipv4) {
    read.source = IpAddress::v4(overlay<Be32>(walk.source));
    read.destination = IpAddress::v4(overlay<Be32>(walk.destination));
  } else {
    read.source = IpAddress::v6(overlay<IpAddress::Bytes>(walk.source));
    read.destination = IpAddress::v6(overlay<IpAddress::Bytes>(walk.destination));
  }
  if (walk.protocol != IpProtocol::udp) return read;
  // Eight bytes behind the IP header are always quoted (RFC 792).
  if (walk.end - walk.l4 < 2 * sizeof(Be16)) return fault(OuterQuoteFault::malformed);
  read.destination_port = overlay<Be16>(quote.data() + walk.l4 + sizeof(Be16));
  return read;
}

/// All of it can be read.
IpBytes whole(std::span<const std::uint8_t> bytes) {
  return {bytes.data(), bytes.size(), bytes.size()};
}

Read read_v4(std::span<const std::uint8_t> packet) {
  const IpWalk ip = walk_ipv4<WalkOf::packet>(whole(packet));
  if (!ip.good) return fault(OuterQuoteFault::malformed);
  if (ip.protocol != IpProtocol::icmp) return fault(OuterQuoteFault::another_message);
  const auto message = packet.subspan(ip.l4, ip.end - ip.l4);
  if (message.size() < sizeof(IcmpHeader)) return fault(OuterQuoteFault::malformed);
  const auto& icmp = overlay<IcmpHeader>(message.data());
  constexpr std::uint8_t kUnreachable = 3;
  constexpr std::uint8_t kFragmentationNeeded = 4;
  if (icmp.type != kUnreachable || icmp.code != kFragmentationNeeded)
    return fault(OuterQuoteFault::another_message);
  // Raw sockets get a message before the kernel has summed it up.
  if (checksum_fold(checksum_add(message)) != 0xffff) return fault(OuterQuoteFault::malformed);
  const auto quote = message.subspan(sizeof icmp);
  return read_quote(quote, walk_ipv4<WalkOf::quote>(whole(quote)), Family::ipv4,
                    icmp.rest.host() & 0xffff);
}

Read read_v6(std::span<const std::uint8_t> message) {
  if (message.size() < sizeof(IcmpHeader)) return fault(OuterQuoteFault::malformed);
  const auto& icmp = overlay<IcmpHeader>(message.data());
  constexpr std::uint8_t kPacketTooBig = 2;  // its code means nothing (RFC 4443 section 3.2)
  if (icmp.type != kPacketTooBig) return fault(OuterQuoteFault::another_message);
  const auto quote = message.subspan(sizeof icmp);
  return read_quote(quote, walk_ipv6(whole(quote), WalkOf::quote), Family::ipv6, icmp.rest.host());
}

}  // namespace

Read read_outer_quote(Family family, std::span<const std::uint8_t> message) {
  return family == Family::ipv4 ? read_v4(message) : read_v6(message);
}

}  // namespace holdfast

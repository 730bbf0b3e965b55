// SPDX-License-Identifier: Apache-2.0
#include "lib/net/ip_walk.h"

namespace holdfast {

bool is_extension(IpProtocol protocol) {
  return protocol == IpProtocol::hop_by_hop || protocol == IpProtocol::routing ||
         protocol == IpProtocol::fragment || protocol == IpProtocol::authentication ||
         protocol == IpProtocol::destination_options;
}

namespace {

/// More than any sane sender uses (RFC 8200 4.1 recommends at most seven), and a bound on the work
/// that one packet can ask for.
constexpr int kMaxExtensionHeaders = 8;

/// Hop-by-hop and destination options, routing: next header, length in 8-byte units beyond the
/// first.
struct ExtensionHeader {
  IpProtocol next_header;
  std::uint8_t length;
  std::uint8_t routing_type;   // of a routing header
  std::uint8_t segments_left;  // of a routing header
};

/// RFC 4302 2: its length counts 4-byte units minus two, and 12 bytes are always there.
constexpr std::size_t kMinAuthenticationHeader = 12;

/// Walks the extension headers from walk.l4 on. True: walk.protocol and walk.l4 are the
/// transport's.
bool walk_extensions(const std::uint8_t* ip, IpWalk& walk) {
  const auto refuse = [&walk](DropReason why) {
    walk.fault = why;
    return false;
  };
  // RFC 7112: all headers are in the first fragment.
  const auto truncated = [&walk] {
    return walk.part == FragmentPart::first ? DropReason::ipv6_fragment_tiny
                                            : DropReason::ipv6_truncated;
  };
  for (int walked = 0; is_extension(walk.protocol); ++walked) {
    if (walked == kMaxExtensionHeaders) return refuse(DropReason::ipv6_bad_extension);
    // Every extension header is at least 8 bytes long.
    if (walk.end - walk.l4 < 8) return refuse(truncated());
    // The packet goes on, but in other buffers: no sane chain of headers is that long.
    if (walk.readable < walk.l4 + 8) return refuse(DropReason::ipv6_bad_extension);
    const IpProtocol current = walk.protocol;

    if (current == IpProtocol::fragment) {
      if (walk.fragmentable != 0) return refuse(DropReason::ipv6_bad_extension);
      const auto& fragment = overlay<Ipv6FragmentHeader>(ip + walk.l4);
      const unsigned offset_more = fragment.offset_more.host();
      walk.protocol = fragment.next_header;
      walk.l4 += sizeof fragment;
      walk.more_fragments = (offset_more & 1) != 0;
      walk.fragment_id = fragment.identification.host();
      walk.fragment_offset = offset_more & 0xfff8;
      walk.fragmentable = walk.l4;
      if (walk.fragment_offset != 0) {
        walk.part = FragmentPart::later;
        return true;
      }
      // With neither offset nor M it is an atomic fragment (RFC 6946): a whole packet.
      if (walk.more_fragments) walk.part = FragmentPart::first;
      continue;
    }

    const auto& header = overlay<ExtensionHeader>(ip + walk.l4);
    // RFC 8200 4.1: hop-by-hop options come first or not at all.
    if (current == IpProtocol::hop_by_hop && walked != 0)
      return refuse(DropReason::ipv6_bad_extension);
    // With segments left this host is a waypoint of a source route, not the end; RFC 5095 forbids
    // to follow type 0, and a VIP follows none.
    if (current == IpProtocol::routing && header.segments_left != 0)
      return refuse(DropReason::ipv6_bad_extension);
    const std::size_t length = current == IpProtocol::authentication
                                   ? (header.length + std::size_t{2}) * 4
                                   : (header.length + std::size_t{1}) * 8;
    if (current == IpProtocol::authentication && length < kMinAuthenticationHeader)
      return refuse(DropReason::ipv6_bad_extension);
    if (length > walk.end - walk.l4) return refuse(truncated());
    if (current == IpProtocol::authentication) walk.authenticated = true;
    walk.protocol = header.next_header;
    walk.l4 += length;
  }
  return true;
}

}  // namespace

IpWalk walk_ipv6(const IpBytes& bytes, WalkOf what) {
  const std::uint8_t* const ip = bytes.at;
  IpWalk walk;
  const auto refuse = [&walk](DropReason why) {
    walk.fault = why;
    return walk;
  };
  if (bytes.readable < sizeof(Ipv6Header)) return refuse(DropReason::ipv6_truncated);
  const auto& header = overlay<Ipv6Header>(ip);
  if (header.version() != 6) return refuse(DropReason::ipv6_bad_version);
  walk.source = ip + offsetof(Ipv6Header, source);
  walk.destination = ip + offsetof(Ipv6Header, destination);
  walk.addresses_known = true;

  walk.length = sizeof(Ipv6Header) + header.payload_length.host();
  if (what == WalkOf::packet && walk.length > bytes.length)
    return refuse(DropReason::ipv6_bad_payload_length);
  walk.end = std::min(walk.length, bytes.length);
  walk.readable = std::min(walk.end, bytes.readable);
  walk.dont_fragment = true;  // RFC 8200 5: routers never fragment
  walk.traffic_class = header.traffic_class();
  walk.protocol = header.next_header;
  walk.l4 = sizeof(Ipv6Header);
  walk.good = walk_extensions(ip, walk);
  return walk;
}

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// Any packet that the parser takes, in any encapsulation: the inner bytes are what came, and the
// outer header is right by a second opinion, which shares no code with the product: lengths, IPv4
// checksum, UDP checksum over all bytes.
//
// Of an input the first byte chooses encapsulation, outer family and segments, the second where
// they are cut, four are the flow's entropy, and the rest is a frame. What libFuzzer mutates are
// also packets of all kinds (tests/dsl/samples.h).
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "lb/encap/encap.h"
#include "lib/net/parse.h"
#include "tests/dsl/mbuf.h"
#include "tests/fuzz/from_samples.h"

namespace {

using namespace holdfast;
using namespace holdfast::dsl;
using View = std::span<const std::uint8_t>;

constexpr std::size_t kChoice = 6;  // bytes before the frame

void require(bool holds) {
  if (!holds) std::abort();
}

unsigned u16(View bytes, std::size_t at) { return bytes[at] * 256u + bytes[at + 1]; }

/// Of 16-bit words in network order, 1 to 65535; nothing at all is 0.
std::uint32_t sum_of(View bytes, std::uint32_t sum = 0) {
  for (std::size_t i = 0; i < bytes.size(); ++i)
    sum += i % 2 == 0 ? bytes[i] * 256u : std::uint32_t{bytes[i]};
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return sum;
}

/// A transport segment with its pseudo header. 65535: its checksum is right.
std::uint32_t transport_sum(View ip, std::size_t header, unsigned protocol) {
  const std::size_t addresses = ip[0] >> 4 == 4 ? 12 : 8;
  const std::size_t width = ip[0] >> 4 == 4 ? 8 : 32;
  const auto length = static_cast<std::uint32_t>(ip.size() - header);
  return sum_of(ip.subspan(header),
                sum_of(ip.subspan(addresses, width)) + length % 65536 + length / 65536 + protocol);
}

/// Whether the outer checksum of this packet is found from its own, which then decides what it
/// must be: a whole TCP or UDP packet behind a plain IP header.
bool is_plain(View inner) {
  const bool v4 = inner[0] >> 4 == 4;
  const std::size_t header = v4 ? 20 : 40;
  const unsigned protocol = v4 ? inner[9] : inner[6];
  if (v4 && (inner[0] != 0x45 || (u16(inner, 6) & 0x3fff) != 0)) return false;
  if (protocol == 6) return true;
  return protocol == 17 && u16(inner, header + 6) != 0 &&
         u16(inner, header + 4) == inner.size() - header;
}

void check_udp(View ip, std::size_t header, View inner, const Tunnel& tunnel) {
  require(u16(ip, header) == (0xc000 | (tunnel.entropy & 0x3fff)));
  require(u16(ip, header + 2) == 6080);
  require(u16(ip, header + 4) == ip.size() - header);
  const unsigned checksum = u16(ip, header + 6);
  if (header == 20 || !tunnel.backend.udp6_checksum) return require(checksum == 0);
  require(checksum != 0);
  const auto sum = transport_sum(ip, header, 17);
  if (sum == 0xffff) return;
  // Wrong, then, by exactly what the inner packet's own is wrong.
  require(is_plain(inner));
  const std::size_t l4 = inner[0] >> 4 == 4 ? 20 : 40;
  require(sum == transport_sum(inner, l4, inner[0] >> 4 == 4 ? inner[9] : inner[6]));
}

void check(View ip, View inner, const Tunnel& tunnel) {
  const bool v4 = tunnel.backend.address.is_v4();
  const std::size_t header = v4 ? 20 : 40;
  const unsigned protocol = v4 ? ip[9] : ip[6];
  const bool inner_v4 = inner[0] >> 4 == 4;
  require(ip[0] == (v4 ? 0x45 : 0x60 | tunnel.packet.traffic_class >> 4));
  require(u16(ip, v4 ? 2 : 4) == ip.size() - (v4 ? 0 : 40));
  if (v4) require(sum_of(ip.first(20)) == 0xffff && u16(ip, 6) == 0x4000);
  const auto kind = tunnel.backend.encapsulation;
  std::size_t before = header;
  if (kind == Encapsulation::ipip) require(protocol == (inner_v4 ? 4 : 41));
  if (kind == Encapsulation::gre) {
    require(protocol == 47 && u16(ip, header) == 0);
    require(u16(ip, header + 2) == (inner_v4 ? 0x0800 : 0x86dd));
    before += 4;
  }
  if (uses_udp(kind)) {
    require(protocol == 17);
    check_udp(ip, header, inner, tunnel);
    before += 8;
  }
  if (kind == Encapsulation::gue0) {
    require(ip[before] == 0 && ip[before + 1] == (inner_v4 ? 4 : 41) && u16(ip, before + 2) == 0);
    before += 4;
  }
  require(before == tunnel_overhead(kind, tunnel.backend.address.family()));
  require(std::ranges::equal(ip.subspan(before), inner));
}

Backend backend_of(std::uint8_t choice) {
  Backend backend;
  const bool v4 = (choice & 4) == 0;
  backend.address = Ip(v4 ? "192.0.2.21" : "2001:db8:100::21");
  backend.tunnel_source = Ip(v4 ? "192.0.2.1" : "2001:db8:100::1");
  backend.encapsulation = static_cast<Encapsulation>(choice & 3);
  backend.udp6_checksum = (choice & 8) == 0;
  return backend;
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  return mutate_from_samples(data, size, max_size, seed, kChoice, [seed](std::size_t i) {
    return static_cast<std::uint8_t>(seed * 0x9e3779b1u >> (i * 4));
  });
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < kChoice || size > 9000) return 0;
  const View frame(data + kChoice, size - kChoice);
  ParsedPacket packet;
  if (parse_packet(frame, packet).verdict.decided()) return 0;
  const View inner = frame.subspan(packet.l3_offset, packet.ip_length);

  const Backend backend = backend_of(data[0]);
  const std::size_t overhead = tunnel_overhead(backend.encapsulation, backend.address.family());
  Bytes bytes(sizeof(EthernetHeader) + overhead, 0xaa);
  const std::size_t front = bytes.size();
  bytes.insert(bytes.end(), inner.begin(), inner.end());
  MbufShape shape;
  // The parser reads headers in the first buffer only, so they are there.
  const std::size_t headers = std::size_t{packet.l4_offset} - packet.l3_offset;
  if ((data[0] & 16) != 0) shape.first_segment = front + headers + 8 + data[1];
  rte_mbuf* mbuf = make_mbuf(bytes, shape);
  const Tunnel tunnel{.backend = backend,
                      .packet = packet,
                      .entropy = data[2] * 0x1000000u + u16({data, size}, 3) * 256 + data[5],
                      .mbuf = *mbuf};
  auto* const at = rte_pktmbuf_mtod(mbuf, std::uint8_t*) + sizeof(EthernetHeader);
  with_encapsulation(backend.encapsulation, [&](auto how) {
    if (backend.address.is_v4())
      write_tunnel<Family::ipv4, how()>(at, tunnel);
    else
      write_tunnel<Family::ipv6, how()>(at, tunnel);
  });
  const Bytes sent = bytes_of(*mbuf);
  free_mbuf(mbuf);
  check(View(sent).subspan(sizeof(EthernetHeader)), inner, tunnel);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
#include "bench/bed.h"

#include <array>
#include <cstddef>
#include <cstring>

#include "lib/maglev/maglev.h"

namespace holdfast::bench {
namespace {

constexpr HashSeed kSeed{0x5eed};
const IpAddress kVip4 = IpAddress::v4(Be32::from_host(0xcb00710a));  // 203.0.113.10
constexpr IpAddress::Bytes kVip6{0x20, 0x01, 0x0d, 0xb8, 0, 0x71, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10};

IpAddress backend_address(Family family, std::uint16_t number) {
  const auto last = static_cast<std::uint32_t>(number + 1);
  if (family == Family::ipv4) return IpAddress::v4(Be32::from_host(0x0a010000 + last));
  IpAddress::Bytes bytes{0xfd, 0x00, 0, 1};
  bytes[14] = static_cast<std::uint8_t>(last >> 8);
  bytes[15] = static_cast<std::uint8_t>(last);
  return IpAddress::v6(bytes);
}

Service service(IpProtocol protocol) { return {.present = true, .protocol = protocol}; }

}  // namespace

std::unique_ptr<Snapshot> make_snapshot(const Fleet& fleet) {
  auto snapshot = std::make_unique<Snapshot>();
  snapshot->generation = 1;
  snapshot->seed = kSeed;
  snapshot->services = {service(IpProtocol::tcp), service(IpProtocol::udp)};
  const std::array vips{VipEntry{kVip4}, VipEntry{IpAddress::v6(kVip6)}};
  std::vector<ServiceRule> rules;
  for (const auto& [vip, options] : vips) {
    rules.push_back({vip, IpProtocol::tcp, {80, 80}, kTcpService});
    rules.push_back({vip, IpProtocol::udp, {443, 443}, kUdpService});
  }
  snapshot->service_table = ServiceTable(vips, rules);

  std::vector<MaglevBackend> members;
  for (std::uint16_t i = 0; i < fleet.backends; ++i) {
    const IpAddress address = backend_address(fleet.tunnel, i);
    members.push_back({address, 100});
    snapshot->backends.push_back({.address = address,
                                  .tunnel_source = backend_address(fleet.tunnel, 0xfffd),
                                  .state = BackendState::eligible,
                                  .encapsulation = fleet.encapsulation,
                                  .present = true,
                                  .keeps_tcp = true,
                                  .keeps_udp = true,
                                  .next_hop_count = 1,
                                  .first_next_hop = i});
    snapshot->next_hops.push_back({.port = PortNumber{0},
                                   .mtu = 1500,
                                   .source = {{2, 0, 0, 0, 0, 1}},
                                   .destination = {{2, 0, 0, 0, 1, static_cast<std::uint8_t>(i)}}});
  }
  auto slots = std::make_shared<SlotTable>();
  for (const std::uint16_t owner : build_maglev(members, kSeed, fleet.table_size))
    slots->push_back(static_cast<BackendNumber>(owner));
  snapshot->pools = {{.present = true, .base = slots, .effective = slots}};
  return snapshot;
}

Buffers::Buffers() {
  for (std::size_t i = 0; i < kCount; ++i) {
    elements_.push_back(std::make_unique<Element>());
    Element& element = *elements_.back();
    rte_mbuf& mbuf = element.mbuf();
    mbuf.buf_addr = element.bytes.data() + sizeof(rte_mbuf);
    mbuf.buf_len = static_cast<std::uint16_t>(sizeof element.bytes - sizeof(rte_mbuf));
    mbuf.nb_segs = 1;
    mbuf.refcnt = 1;
  }
}

Template::Template(Family family, IpProtocol protocol, std::uint8_t flags, std::uint16_t payload) {
  const bool v4 = family == Family::ipv4;
  const std::size_t l4 = sizeof(EthernetHeader) + (v4 ? sizeof(Ipv4Header) : sizeof(Ipv6Header));
  const bool tcp = protocol == IpProtocol::tcp;
  const std::size_t end = l4 + (tcp ? sizeof(TcpHeader) : sizeof(UdpHeader)) + payload;
  size_ = static_cast<std::uint16_t>(std::max<std::size_t>(60, end));  // 64 with the checksum

  const auto type = v4 ? EtherType::ipv4 : EtherType::ipv6;
  put(0, EthernetHeader{.destination = {{2, 0, 0, 0, 0, 1}},
                        .source = {{2, 0, 0, 0, 0, 2}},
                        .ether_type = Be16::from_host(static_cast<std::uint16_t>(type))});
  if (v4) {
    put(14, Ipv4Header{.version_ihl = 0x45,
                       .type_of_service = 0,
                       .total_length = Be16::from_host(static_cast<std::uint16_t>(end - 14)),
                       .identification = {},
                       .flags_fragment_offset = Be16::from_host(Ipv4Header::kDontFragment),
                       .time_to_live = 60,
                       .protocol = protocol,
                       .header_checksum = {},
                       .source = {},
                       .destination = kVip4.as_v4()});
  } else {
    IpAddress::Bytes client{0x20, 0x01, 0x0d, 0xb8, 0, 0xc1};
    put(14, Ipv6Header{.version_class_label = Be32::from_host(6u << 28),
                       .payload_length = Be16::from_host(static_cast<std::uint16_t>(end - l4)),
                       .next_header = protocol,
                       .hop_limit = 60,
                       .source = client,
                       .destination = kVip6});
  }
  if (tcp) {
    TcpHeader header{};
    header.destination_port = Be16::from_host(80);
    header.data_offset = 5 << 4;
    header.flags = flags;
    put(l4, header);
  } else {
    UdpHeader header{};
    header.destination_port = Be16::from_host(443);
    header.length = Be16::from_host(static_cast<std::uint16_t>(end - l4));
    put(l4, header);
  }
  client_at_ = v4 ? 14 + 12 : 14 + 8 + 12;
  port_at_ = static_cast<std::uint16_t>(l4);
  learn_what_changes();
}

void Template::learn_what_changes() {
  std::memcpy(&ether_type_, bytes_.data() + 12, 2);
  std::memcpy(&length_field_, bytes_.data() + 14 + 2, 4);
}

Template Template::tcp(Family family, std::uint8_t flags, std::uint16_t payload) {
  return {family, IpProtocol::tcp, flags, payload};
}
Template Template::udp(Family family, std::uint16_t payload) {
  return {family, IpProtocol::udp, 0, payload};
}

Template Template::fragment() {
  Template packet = tcp(Family::ipv4, TcpHeader::kAck, 60);
  packet.put(14 + offsetof(Ipv4Header, flags_fragment_offset),
             Be16::from_host(Ipv4Header::kMoreFragments | 185));
  packet.port_at_ = 14 + offsetof(Ipv4Header, identification);
  return packet;
}

Template Template::icmp_error() {
  constexpr std::size_t kQuote = 14 + sizeof(Ipv4Header) + sizeof(IcmpHeader);
  constexpr std::size_t kQuotedL4 = kQuote + sizeof(Ipv4Header);
  constexpr std::size_t kEnd = kQuotedL4 + 8;
  Template packet = tcp(Family::ipv4, 0);
  Ipv4Header header{};
  std::memcpy(&header, packet.bytes_.data() + 14, sizeof header);
  header.total_length = Be16::from_host(kEnd - kQuote);
  header.source = kVip4.as_v4();
  header.destination = {};
  packet.put(kQuote, header);
  packet.put(kQuotedL4, std::array{Be16::from_host(80), Be16{}});

  header.total_length = Be16::from_host(kEnd - 14);
  header.protocol = IpProtocol::icmp;
  header.source = Be32::from_host(0xc6336401);  // 198.51.100.1, a router
  header.destination = kVip4.as_v4();
  packet.put(14, header);
  packet.put(14 + sizeof header, IcmpHeader{.type = 3, .code = 1, .checksum = {}, .rest = {}});
  packet.size_ = kEnd;
  packet.client_at_ = kQuote + offsetof(Ipv4Header, destination);
  packet.port_at_ = kQuotedL4 + sizeof(Be16);
  packet.learn_what_changes();
  return packet;
}

void Template::lay_down(rte_mbuf& mbuf) const {
  mbuf.data_off = RTE_PKTMBUF_HEADROOM;
  mbuf.data_len = size_;
  mbuf.pkt_len = size_;
  std::memcpy(rte_pktmbuf_mtod(&mbuf, void*), bytes_.data(), size_);
}

}  // namespace holdfast::bench

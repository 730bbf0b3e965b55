// SPDX-License-Identifier: Apache-2.0
// Bytes -> layers. Each layer is first read with every field as it stands in the bytes; then the
// fields that have their computed value anyway are left open.
#include <algorithm>

#include "tests/dsl/describe.h"

namespace holdfast::dsl {

namespace {

/// Reads fields from the front of what is left.
class Reader {
 public:
  explicit Reader(std::span<const std::uint8_t> bytes) : left_(bytes) {}

  [[nodiscard]] bool has(std::size_t size) const { return left_.size() >= size; }
  [[nodiscard]] std::size_t left() const { return left_.size(); }
  [[nodiscard]] std::uint8_t peek(std::size_t at) const { return left_[at]; }
  std::uint8_t u8() {
    const std::uint8_t value = left_[0];
    left_ = left_.subspan(1);
    return value;
  }
  std::uint16_t u16() {
    const unsigned high = u8();
    return static_cast<std::uint16_t>(high << 8 | u8());
  }
  std::uint32_t u32() {
    const std::uint32_t high = u16();
    return high << 16 | u16();
  }
  Bytes bytes(std::size_t size) {
    Bytes result(left_.begin(), left_.begin() + static_cast<std::ptrdiff_t>(size));
    left_ = left_.subspan(size);
    return result;
  }
  MacAddress mac() {
    MacAddress result;
    for (auto& byte : result.bytes) byte = u8();
    return result;
  }
  IpAddress v4() { return IpAddress::v4(Be32::from_host(u32())); }
  IpAddress v6() {
    IpAddress::Bytes result;
    for (auto& byte : result) byte = u8();
    return IpAddress::v6(result);
  }
  /// Puts what lies behind the next `size` bytes aside.
  Bytes cut_behind(std::size_t size) {
    if (left_.size() <= size) return {};
    Bytes rest(left_.begin() + static_cast<std::ptrdiff_t>(size), left_.end());
    left_ = left_.first(size);
    return rest;
  }

 private:
  std::span<const std::uint8_t> left_;
};

class Decoder {
 public:
  explicit Decoder(std::span<const std::uint8_t> frame) : in_(frame) {}

  std::vector<Layer> decode() {
    ethernet();
    if (in_.left() > 0) layers_.push_back(Raw{in_.bytes(in_.left())});
    if (!padding_.empty()) layers_.push_back(Padding{padding_});
    return std::move(layers_);
  }

 private:
  void ethernet() {
    if (!in_.has(14)) return;
    Eth eth;
    eth.dst = in_.mac();
    eth.src = in_.mac();
    eth.type = in_.u16();
    layers_.push_back(eth);
    by_ether_type(*eth.type);
  }

  void by_ether_type(std::uint16_t type) {
    if ((type == 0x8100 || type == 0x88a8) && in_.has(4)) {
      const std::uint16_t control = in_.u16();
      Vlan vlan{.id = static_cast<std::uint16_t>(control & 0xfff),
                .priority = static_cast<std::uint8_t>(control >> 12),
                .tpid = type,
                .type = in_.u16()};
      layers_.push_back(vlan);
      by_ether_type(*vlan.type);
    } else if (type == 0x0800) {
      ip4(true);
    } else if (type == 0x86dd) {
      ip6(true);
    }
  }

  /// `outermost`: what lies behind the IP length is Ethernet padding.
  void ip4(bool outermost) {
    if (!in_.has(20)) return;
    const unsigned header = (in_.peek(0) & 0xfu) * 4;
    const unsigned length = in_.peek(2) * 256u + in_.peek(3);
    if (header < 20 || header > in_.left()) return;
    if (outermost && length >= header) padding_ = in_.cut_behind(length);
    Ip4 ip;
    const unsigned version_ihl = in_.u8();
    ip.version = static_cast<std::uint8_t>(version_ihl >> 4);
    ip.ihl = static_cast<std::uint8_t>(version_ihl & 0xf);
    const unsigned tos = in_.u8();
    ip.dscp = static_cast<std::uint8_t>(tos >> 2);
    ip.ecn = static_cast<std::uint8_t>(tos & 3);
    ip.total_length = in_.u16();
    ip.id = in_.u16();
    const unsigned flags = in_.u16();
    ip.reserved_flag = (flags & 0x8000) != 0;
    ip.df = (flags & 0x4000) != 0;
    ip.more_fragments = (flags & 0x2000) != 0;
    ip.fragment_offset = static_cast<std::uint16_t>(flags & 0x1fff);
    ip.ttl = in_.u8();
    ip.protocol = in_.u8();
    ip.checksum = in_.u16();
    ip.src = in_.v4();
    ip.dst = in_.v4();
    ip.options = in_.bytes(header - 20);
    layers_.push_back(ip);
    if (ip.fragment_offset == 0) by_protocol(*ip.protocol);
  }

  void ip6(bool outermost) {
    if (!in_.has(40)) return;
    if (outermost) padding_ = in_.cut_behind(40u + in_.peek(4) * 256u + in_.peek(5));
    Ip6 ip;
    const std::uint32_t first = in_.u32();
    ip.version = static_cast<std::uint8_t>(first >> 28);
    ip.dscp = static_cast<std::uint8_t>(first >> 22 & 0x3f);
    ip.ecn = static_cast<std::uint8_t>(first >> 20 & 3);
    ip.flow_label = first & 0xfffff;
    ip.payload_length = in_.u16();
    ip.next_header = in_.u8();
    ip.hop_limit = in_.u8();
    ip.src = in_.v6();
    ip.dst = in_.v6();
    layers_.push_back(ip);
    by_protocol(*ip.next_header);
  }

  void by_protocol(std::uint8_t protocol) {
    switch (static_cast<IpProtocol>(protocol)) {
      case IpProtocol::hop_by_hop:
        return options<HopByHop>();
      case IpProtocol::destination_options:
        return options<DestinationOptions>();
      case IpProtocol::routing:
        return routing();
      case IpProtocol::fragment:
        return fragment();
      case IpProtocol::authentication:
        return authentication();
      case IpProtocol::ipv4:
        return ip4(false);
      case IpProtocol::ipv6:
        return ip6(false);
      case IpProtocol::tcp:
        return tcp();
      case IpProtocol::udp:
        return udp();
      case IpProtocol::gre:
        return gre();
      case IpProtocol::icmp:
        return icmp<Icmp>();
      case IpProtocol::icmpv6:
        return icmp<Icmp6>();
      case IpProtocol::esp:
      case IpProtocol::no_next_header:
        return;
    }
  }

  template <class Options>
  void options() {
    if (!in_.has(8) || !in_.has(in_.peek(1) * std::size_t{8} + 8)) return;
    Options header;
    header.next_header = in_.u8();
    header.length = in_.u8();
    header.options = in_.bytes(*header.length * std::size_t{8} + 6);
    layers_.push_back(header);
    by_protocol(*header.next_header);
  }

  void routing() {
    if (!in_.has(8) || !in_.has(in_.peek(1) * std::size_t{8} + 8)) return;
    Routing header;
    header.next_header = in_.u8();
    header.length = in_.u8();
    header.type = in_.u8();
    header.segments_left = in_.u8();
    header.data = in_.bytes(*header.length * std::size_t{8} + 4);
    layers_.push_back(header);
    by_protocol(*header.next_header);
  }

  void fragment() {
    if (!in_.has(8)) return;
    Fragment6 header;
    header.next_header = in_.u8();
    header.reserved = in_.u8();
    const unsigned offset_more = in_.u16();
    header.offset = static_cast<std::uint16_t>(offset_more >> 3);
    header.reserved_bits = static_cast<std::uint8_t>(offset_more >> 1 & 3);
    header.more = (offset_more & 1) != 0;
    header.id = in_.u32();
    layers_.push_back(header);
    if (header.offset == 0) by_protocol(*header.next_header);
  }

  void authentication() {
    if (!in_.has(8) || !in_.has((in_.peek(1) + std::size_t{2}) * 4)) return;
    Authentication header;
    header.next_header = in_.u8();
    header.length = in_.u8();
    header.data = in_.bytes((*header.length + std::size_t{2}) * 4 - 2);
    layers_.push_back(header);
    by_protocol(*header.next_header);
  }

  void tcp() {
    if (!in_.has(20)) return;
    const unsigned header = (in_.peek(12) >> 4) * 4u;
    if (header < 20 || !in_.has(header)) return;
    Tcp tcp;
    tcp.sport = in_.u16();
    tcp.dport = in_.u16();
    tcp.seq = in_.u32();
    tcp.ack = in_.u32();
    const unsigned offset = in_.u8();
    tcp.data_offset = static_cast<std::uint8_t>(offset >> 4);
    tcp.reserved = static_cast<std::uint8_t>(offset & 0xf);
    tcp.flags = in_.u8();
    tcp.window = in_.u16();
    tcp.checksum = in_.u16();
    tcp.urgent = in_.u16();
    tcp.options = in_.bytes(header - 20);
    layers_.push_back(tcp);
  }

  void udp() {
    if (!in_.has(8)) return;
    Udp udp;
    udp.sport = in_.u16();
    udp.dport = in_.u16();
    udp.length = in_.u16();
    udp.checksum = in_.u16();
    layers_.push_back(udp);
    if (udp.dport == 6080 && in_.has(1)) gue();
  }

  void gre() {
    if (!in_.has(4)) return;
    Gre gre{.flags = in_.u16(), .protocol = in_.u16()};
    layers_.push_back(gre);
    // Other flags say that more follows.
    if (gre.flags == 0 && *gre.protocol == 0x0800) ip4(false);
    if (gre.flags == 0 && *gre.protocol == 0x86dd) ip6(false);
  }

  void gue() {
    const unsigned first = in_.peek(0) >> 4;
    if (first == 4) return ip4(false);
    if (first == 6) return ip6(false);
    if (in_.peek(0) != 0 || !in_.has(4)) return;
    Gue0 gue{.version_length = in_.u8(), .protocol = in_.u8(), .flags = in_.u16()};
    layers_.push_back(gue);
    if (*gue.protocol == 4) ip4(false);
    if (*gue.protocol == 41) ip6(false);
  }

  template <class Message>
  void icmp() {
    if (!in_.has(8)) return;
    Message message;
    message.type = in_.u8();
    message.code = in_.u8();
    message.checksum = in_.u16();
    message.rest = in_.u32();
    layers_.push_back(message);
    constexpr bool kV4 = std::is_same_v<Message, Icmp>;
    const auto type = message.type;
    if (kV4 && (type == 3 || type == 11 || type == 12)) ip4(false);
    if (!kV4 && type >= 1 && type <= 4) ip6(false);
  }

  Reader in_;
  std::vector<Layer> layers_;
  Bytes padding_;
};

template <class T>
constexpr bool kIsComputed = false;
template <class T>
constexpr bool kIsComputed<std::optional<T>> = true;

/// Leaves open what is computed to the same bytes anyway.
std::vector<Layer> simplify(std::vector<Layer> layers, const Bytes& bytes) {
  // From the back: a checksum in front covers what is open behind it.
  for (std::size_t i = layers.size(); i-- > 0;) {
    const auto open = [&](const char*, auto& field) {
      if constexpr (kIsComputed<std::remove_reference_t<decltype(field)>>) {
        const auto kept = field;
        field.reset();
        if (Packet(layers).bytes() != bytes) field = kept;
      }
    };
    std::visit([&](auto& layer) { visit_fields(layer, open); }, layers[i]);
  }
  return layers;
}

}  // namespace

Packet dissect(std::span<const std::uint8_t> frame) {
  auto layers = Decoder(frame).decode();
  // A Raw or Padding that ends a frame is exact by nature; all other layers are when this holds.
  Packet packet(std::move(layers));
  const Bytes bytes(frame.begin(), frame.end());
  return packet.bytes() == bytes ? packet : Packet(Raw{bytes});
}

Packet decode(std::span<const std::uint8_t> frame) {
  return Packet(simplify(dissect(frame).layers(), Bytes(frame.begin(), frame.end())));
}

}  // namespace holdfast::dsl

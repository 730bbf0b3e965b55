// SPDX-License-Identifier: Apache-2.0
// Layers -> bytes. Written from the back, so that each layer knows what it carries; with its own
// arithmetic where it can, so that it does not repeat the product's mistakes.
#include "tests/dsl/packet.h"

namespace holdfast::dsl {

namespace {

class Writer {
 public:
  Writer() { out_.reserve(kUsualFrame); }
  Writer& u8(unsigned value) {
    out_.push_back(static_cast<std::uint8_t>(value));
    return *this;
  }
  Writer& u16(unsigned value) { return u8(value >> 8 & 0xff).u8(value & 0xff); }
  Writer& u32(std::uint32_t value) { return u16(value >> 16).u16(value & 0xffff); }
  Writer& raw(std::span<const std::uint8_t> bytes) {
    out_.insert(out_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  Writer& address(const IpAddress& address) {
    return raw(std::span(address.bytes()).first(address.is_v4() ? 4 : 16));
  }
  [[nodiscard]] Bytes take() { return std::move(out_); }

 private:
  // Growing byte by byte takes most of the time of a flood's test.
  static constexpr std::size_t kUsualFrame = 128;
  Bytes out_;
};

/// RFC 1071, word by word.
std::uint16_t internet_checksum(const Bytes& bytes) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < bytes.size(); i += 2)
    sum += static_cast<unsigned>(bytes[i]) << 8 | (i + 1 < bytes.size() ? bytes[i + 1] : 0u);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

void patch_u16(Bytes& bytes, std::size_t at, std::uint16_t value) {
  bytes[at] = static_cast<std::uint8_t>(value >> 8);
  bytes[at + 1] = static_cast<std::uint8_t>(value);
}

Bytes filled(const Bytes& bytes, std::size_t already, std::size_t multiple) {
  Bytes result = bytes;
  while ((result.size() + already) % multiple != 0) result.push_back(0);
  return result;
}

/// The IP header that encloses a transport header.
struct Enclosing {
  IpAddress src{};
  IpAddress dst{};
  bool known = false;
};

std::uint16_t transport_checksum(const Enclosing& ip, IpProtocol protocol, const Bytes& segment) {
  Writer all;
  if (ip.known && protocol != IpProtocol::icmp)
    all.address(ip.src)
        .address(ip.dst)
        .u32(static_cast<std::uint32_t>(segment.size()))
        .u32(static_cast<unsigned>(protocol));
  return internet_checksum(all.raw(segment).take());
}

struct EtherTypeOf {
  unsigned operator()(const Vlan& vlan) const { return vlan.tpid; }
  unsigned operator()(const Ip4&) const { return 0x0800; }
  unsigned operator()(const Ip6&) const { return 0x86dd; }
  template <class Other>
  unsigned operator()(const Other&) const {
    return 0x88b5;  // IEEE 802 local experimental
  }
};

struct ProtocolOf {
  unsigned operator()(const Ip4&) const { return 4; }
  unsigned operator()(const Ip6&) const { return 41; }
  unsigned operator()(const HopByHop&) const { return 0; }
  unsigned operator()(const DestinationOptions&) const { return 60; }
  unsigned operator()(const Routing&) const { return 43; }
  unsigned operator()(const Fragment6&) const { return 44; }
  unsigned operator()(const Authentication&) const { return 51; }
  unsigned operator()(const Tcp&) const { return 6; }
  unsigned operator()(const Udp&) const { return 17; }
  unsigned operator()(const Gre&) const { return 47; }
  unsigned operator()(const Icmp&) const { return 1; }
  unsigned operator()(const Icmp6&) const { return 58; }
  template <class Other>
  unsigned operator()(const Other&) const {
    return 253;  // RFC 3692: experimentation
  }
};

class Encoder {
 public:
  explicit Encoder(std::span<const Layer> layers) : layers_(layers) {}

  /// Layers from `index` on.
  Bytes encode(std::size_t index, Enclosing ip) {
    if (index == layers_.size()) return {};
    return std::visit([&](const auto& layer) { return put(layer, index, ip); }, layers_[index]);
  }

 private:
  unsigned ether_type(const Computed<std::uint16_t>& given, std::size_t index) const {
    if (given) return *given;
    return index + 1 < layers_.size() ? std::visit(EtherTypeOf{}, layers_[index + 1]) : 0x88b5;
  }
  unsigned next_protocol(const Computed<std::uint8_t>& given, std::size_t index) const {
    if (given) return *given;
    return index + 1 < layers_.size() ? std::visit(ProtocolOf{}, layers_[index + 1]) : 59;
  }

  Bytes put(const Eth& eth, std::size_t index, const Enclosing& ip) {
    return Writer()
        .raw(eth.dst.bytes)
        .raw(eth.src.bytes)
        .u16(ether_type(eth.type, index))
        .raw(encode(index + 1, ip))
        .take();
  }

  Bytes put(const Vlan& vlan, std::size_t index, const Enclosing& ip) {
    return Writer()
        .u16(static_cast<unsigned>(vlan.priority << 12 | (vlan.id & 0xfff)))
        .u16(ether_type(vlan.type, index))
        .raw(encode(index + 1, ip))
        .take();
  }

  Bytes put(const Ip4& ip, std::size_t index, const Enclosing&) {
    const Bytes options = filled(ip.options, 0, 4);
    const Bytes rest = encode(index + 1, {ip.src, ip.dst, true});
    const std::size_t header = 20 + options.size();
    const auto ihl = ip.ihl.value_or(static_cast<std::uint8_t>(header / 4));
    const auto length = ip.total_length.value_or(static_cast<std::uint16_t>(header + rest.size()));
    const unsigned flags =
        (ip.reserved_flag ? 4u : 0u) | (ip.df ? 2u : 0u) | (ip.more_fragments ? 1u : 0u);
    Bytes out = Writer()
                    .u8(static_cast<unsigned>(ip.version.value_or(4) << 4 | ihl))
                    .u8(static_cast<unsigned>(ip.dscp << 2 | ip.ecn))
                    .u16(length)
                    .u16(ip.id)
                    .u16(flags << 13 | ip.fragment_offset)
                    .u8(ip.ttl)
                    .u8(next_protocol(ip.protocol, index))
                    .u16(0)
                    .address(ip.src)
                    .address(ip.dst)
                    .raw(options)
                    .take();
    patch_u16(out, 10, ip.checksum.value_or(internet_checksum(out)));
    return Writer().raw(out).raw(rest).take();
  }

  Bytes put(const Ip6& ip, std::size_t index, const Enclosing&) {
    const Bytes rest = encode(index + 1, {ip.src, ip.dst, true});
    const std::uint32_t first = std::uint32_t{ip.version.value_or(6)} << 28 |
                                std::uint32_t{ip.dscp} << 22 | std::uint32_t{ip.ecn} << 20 |
                                ip.flow_label;
    return Writer()
        .u32(first)
        .u16(ip.payload_length.value_or(static_cast<std::uint16_t>(rest.size())))
        .u8(next_protocol(ip.next_header, index))
        .u8(ip.hop_limit)
        .address(ip.src)
        .address(ip.dst)
        .raw(rest)
        .take();
  }

  template <class Options>
  requires std::is_same_v<Options, HopByHop> || std::is_same_v<Options, DestinationOptions> Bytes
  put(const Options& header, std::size_t index, const Enclosing& ip) {
    const Bytes options = filled(header.options, 2, 8);
    const auto length = static_cast<std::uint8_t>((options.size() + 2) / 8 - 1);
    return Writer()
        .u8(next_protocol(header.next_header, index))
        .u8(header.length.value_or(length))
        .raw(options)
        .raw(encode(index + 1, ip))
        .take();
  }

  Bytes put(const Routing& header, std::size_t index, const Enclosing& ip) {
    const Bytes data = filled(header.data, 4, 8);
    return Writer()
        .u8(next_protocol(header.next_header, index))
        .u8(header.length.value_or(static_cast<std::uint8_t>((data.size() + 4) / 8 - 1)))
        .u8(header.type)
        .u8(header.segments_left)
        .raw(data)
        .raw(encode(index + 1, ip))
        .take();
  }

  Bytes put(const Fragment6& header, std::size_t index, const Enclosing& ip) {
    return Writer()
        .u8(next_protocol(header.next_header, index))
        .u8(header.reserved)
        .u16(static_cast<unsigned>(header.offset << 3 | header.reserved_bits << 1 |
                                   (header.more ? 1 : 0)))
        .u32(header.id)
        .raw(encode(index + 1, ip))
        .take();
  }

  Bytes put(const Authentication& header, std::size_t index, const Enclosing& ip) {
    const Bytes data = filled(header.data, 2, 4);
    return Writer()
        .u8(next_protocol(header.next_header, index))
        .u8(header.length.value_or(static_cast<std::uint8_t>((data.size() + 2) / 4 - 2)))
        .raw(data)
        .raw(encode(index + 1, ip))
        .take();
  }

  Bytes put(const Tcp& tcp, std::size_t index, const Enclosing& ip) {
    const Bytes options = filled(tcp.options, 0, 4);
    const auto offset = tcp.data_offset.value_or(static_cast<std::uint8_t>(5 + options.size() / 4));
    Bytes out = Writer()
                    .u16(tcp.sport)
                    .u16(tcp.dport)
                    .u32(tcp.seq)
                    .u32(tcp.ack)
                    .u8(static_cast<unsigned>(offset << 4 | tcp.reserved))
                    .u8(tcp.flags)
                    .u16(tcp.window)
                    .u16(0)
                    .u16(tcp.urgent)
                    .raw(options)
                    .raw(encode(index + 1, {}))
                    .take();
    patch_u16(out, 16, tcp.checksum.value_or(transport_checksum(ip, IpProtocol::tcp, out)));
    return out;
  }

  Bytes put(const Udp& udp, std::size_t index, const Enclosing& ip) {
    const Bytes rest = encode(index + 1, {});
    Bytes out = Writer()
                    .u16(udp.sport)
                    .u16(udp.dport)
                    .u16(udp.length.value_or(static_cast<std::uint16_t>(8 + rest.size())))
                    .u16(0)
                    .raw(rest)
                    .take();
    const std::uint16_t sum = transport_checksum(ip, IpProtocol::udp, out);
    // RFC 768: zero would say "none".
    patch_u16(out, 6, udp.checksum.value_or(sum == 0 ? std::uint16_t{0xffff} : sum));
    return out;
  }

  Bytes put(const Gre& gre, std::size_t index, const Enclosing& ip) {
    return Writer()
        .u16(gre.flags)
        .u16(ether_type(gre.protocol, index))
        .raw(encode(index + 1, ip))
        .take();
  }

  Bytes put(const Gue0& gue, std::size_t index, const Enclosing& ip) {
    return Writer()
        .u8(gue.version_length)
        .u8(next_protocol(gue.protocol, index))
        .u16(gue.flags)
        .raw(encode(index + 1, ip))
        .take();
  }

  template <class Message>
  requires std::is_same_v<Message, Icmp> || std::is_same_v<Message, Icmp6> Bytes
  put(const Message& icmp, std::size_t index, const Enclosing& ip) {
    Bytes out = Writer()
                    .u8(icmp.type)
                    .u8(icmp.code)
                    .u16(0)
                    .u32(icmp.rest)
                    .raw(encode(index + 1, {}))
                    .take();
    constexpr auto kProtocol =
        std::is_same_v<Message, Icmp> ? IpProtocol::icmp : IpProtocol::icmpv6;
    patch_u16(out, 2, icmp.checksum.value_or(transport_checksum(ip, kProtocol, out)));
    return out;
  }

  Bytes put(const Raw& raw, std::size_t index, const Enclosing& ip) {
    return Writer().raw(raw.bytes).raw(encode(index + 1, ip)).take();
  }
  Bytes put(const Padding& padding, std::size_t index, const Enclosing& ip) {
    return Writer().raw(padding.bytes).raw(encode(index + 1, ip)).take();
  }

  std::span<const Layer> layers_;
};

}  // namespace

Bytes Packet::bytes() const {
  // Padding is outside of all lengths: what comes before it is encoded without it.
  std::size_t padded_from = layers_.size();
  while (padded_from > 0 && std::holds_alternative<Padding>(layers_[padded_from - 1]))
    --padded_from;
  const std::span all(layers_);
  Bytes out = Encoder(all.first(padded_from)).encode(0, {});
  const Bytes padding = Encoder(all.subspan(padded_from)).encode(0, {});
  out.insert(out.end(), padding.begin(), padding.end());
  if (cut_ && *cut_ < out.size()) out.resize(*cut_);
  return out;
}

}  // namespace holdfast::dsl

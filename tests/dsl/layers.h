// SPDX-License-Identifier: Apache-2.0
// The layers of a packet as a test writes them: what is not mentioned has a sensible default, and
// what an optional leaves open (lengths, checksums, protocol numbers) is computed from what
// follows. Addresses are of RFC 5737 and RFC 3849 only.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lib/net/address.h"
#include "lib/net/headers.h"

namespace holdfast::dsl {

using Bytes = std::vector<std::uint8_t>;
template <class T>
using Computed = std::optional<T>;  // absent: as it must be

/// An address written as text; throws std::invalid_argument for what is none.
struct Ip : IpAddress {
  // A test writes "192.0.2.1" where an address is meant: NOLINTBEGIN(google-explicit-constructor)
  Ip(const IpAddress& address) : IpAddress(address) {}
  Ip(std::string_view text) : IpAddress(read(text)) {}
  Ip(const char* text) : Ip(std::string_view(text)) {}
  // NOLINTEND(google-explicit-constructor)

 private:
  static IpAddress read(std::string_view text) {
    const auto address = IpAddress::parse(text);
    if (!address) throw std::invalid_argument("no address: " + std::string(text));
    return *address;
  }
};

struct Mac : MacAddress {
  // As for Ip: NOLINTNEXTLINE(google-explicit-constructor)
  Mac(const MacAddress& address) : MacAddress(address) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  Mac(const char* text) : MacAddress(MacAddress::parse(text).value()) {}
};

inline constexpr std::uint8_t Fin = TcpHeader::kFin;
inline constexpr std::uint8_t Syn = TcpHeader::kSyn;
inline constexpr std::uint8_t Rst = TcpHeader::kRst;
inline constexpr std::uint8_t Psh = TcpHeader::kPsh;
inline constexpr std::uint8_t Ack = TcpHeader::kAck;

/// By default from the router to the load balancer.
struct Eth {
  Mac src = "02:00:00:00:00:fe";
  Mac dst = "02:00:00:00:00:01";
  Computed<std::uint16_t> type{};
};
/// What the load balancer sends to a next hop unless the test says otherwise.
inline const Eth from_lb{.src = "02:00:00:00:00:01", .dst = "02:00:00:00:00:fe"};

struct Vlan {
  std::uint16_t id = 1;
  std::uint8_t priority = 0;  // PCP and DEI: 4 bits
  std::uint16_t tpid = 0x8100;
  Computed<std::uint16_t> type{};
};

struct Ip4 {
  Ip src = "198.51.100.7";
  Ip dst = "203.0.113.10";
  std::uint8_t dscp = 0;
  std::uint8_t ecn = 0;
  std::uint8_t ttl = 64;
  std::uint16_t id = 0;
  bool df = true;
  bool more_fragments = false;
  bool reserved_flag = false;
  std::uint16_t fragment_offset = 0;  // in units of 8 bytes
  Bytes options{};                    // filled with zeros to a multiple of 4
  Computed<std::uint8_t> version{};
  Computed<std::uint8_t> ihl{};  // in units of 4 bytes
  Computed<std::uint16_t> total_length{};
  Computed<std::uint8_t> protocol{};
  Computed<std::uint16_t> checksum{};
};

struct Ip6 {
  Ip src = "2001:db8:51::7";
  Ip dst = "2001:db8::10";
  std::uint8_t dscp = 0;
  std::uint8_t ecn = 0;
  std::uint8_t hop_limit = 64;
  std::uint32_t flow_label = 0;
  Computed<std::uint8_t> version{};
  Computed<std::uint16_t> payload_length{};
  Computed<std::uint8_t> next_header{};
};

/// IPv6 extension headers. `options` is filled with zeros to the next multiple of 8 bytes.
struct HopByHop {
  Bytes options{1, 4, 0, 0, 0, 0};  // PadN
  Computed<std::uint8_t> next_header{};
  Computed<std::uint8_t> length{};  // in units of 8 bytes, the first not counted
};
struct DestinationOptions {
  Bytes options{1, 4, 0, 0, 0, 0};
  Computed<std::uint8_t> next_header{};
  Computed<std::uint8_t> length{};
};
struct Routing {
  std::uint8_t type = 0;
  std::uint8_t segments_left = 0;
  Bytes data{0, 0, 0, 0};
  Computed<std::uint8_t> next_header{};
  Computed<std::uint8_t> length{};
};
struct Fragment6 {
  std::uint16_t offset = 0;  // in units of 8 bytes
  bool more = false;
  std::uint32_t id = 0;
  std::uint8_t reserved = 0;
  std::uint8_t reserved_bits = 0;  // the two between offset and M
  Computed<std::uint8_t> next_header{};
};
struct Authentication {
  Bytes data = Bytes(14);  // reserved 2, SPI 4, sequence 4, ICV; filled to a multiple of 4
  Computed<std::uint8_t> next_header{};
  Computed<std::uint8_t> length{};  // in units of 4 bytes, the first two not counted
};

struct Tcp {
  std::uint16_t sport = 40000;
  std::uint16_t dport = 80;
  std::uint8_t flags = Ack;
  std::uint32_t seq = 1;
  std::uint32_t ack = 0;
  std::uint16_t window = 65535;
  std::uint16_t urgent = 0;
  std::uint8_t reserved = 0;  // 4 bits
  Bytes options{};            // filled with zeros to a multiple of 4
  Computed<std::uint8_t> data_offset{};
  Computed<std::uint16_t> checksum{};
};

struct Udp {
  std::uint16_t sport = 40000;
  std::uint16_t dport = 443;
  Computed<std::uint16_t> length{};
  Computed<std::uint16_t> checksum{};
};

/// RFC 2784.
struct Gre {
  std::uint16_t flags = 0;  // and version
  Computed<std::uint16_t> protocol{};
};

/// What stands between a Udp to port 6080 and the inner packet in GUE variant 0; in variant 1 the
/// inner packet follows the Udp.
struct Gue0 {
  std::uint8_t version_length = 0;
  Computed<std::uint8_t> protocol{};
  std::uint16_t flags = 0;
};

/// What is quoted follows as further layers, or as quote(packet, bytes).
struct Icmp {
  std::uint8_t type = 3;
  std::uint8_t code = 0;
  std::uint32_t rest = 0;  // MTU, pointer, identifier and sequence...
  Computed<std::uint16_t> checksum{};
};
struct Icmp6 {
  std::uint8_t type = 1;
  std::uint8_t code = 0;
  std::uint32_t rest = 0;
  Computed<std::uint16_t> checksum{};
};

struct Raw {
  Bytes bytes{};
};

/// Ethernet padding: behind all else, counted by no length field.
struct Padding {
  Bytes bytes{};
};

using Layer = std::variant<Eth, Vlan, Ip4, Ip6, HopByHop, DestinationOptions, Routing, Fragment6,
                           Authentication, Tcp, Udp, Gre, Gue0, Icmp, Icmp6, Raw, Padding>;

/// Calls visit(name, field) for each field of a layer: the one list that printing and comparing
/// use.
template <class L, class Visitor>
void visit_fields(L& layer, Visitor&& visit) {
  using T = std::remove_const_t<L>;
#define F(field) visit(#field, layer.field)
  if constexpr (std::is_same_v<T, Eth>) {
    F(src), F(dst), F(type);
  } else if constexpr (std::is_same_v<T, Vlan>) {
    F(id), F(priority), F(tpid), F(type);
  } else if constexpr (std::is_same_v<T, Ip4>) {
    F(src), F(dst), F(dscp), F(ecn), F(ttl), F(id), F(df), F(more_fragments), F(reserved_flag),
        F(fragment_offset), F(options), F(version), F(ihl), F(total_length), F(protocol),
        F(checksum);
  } else if constexpr (std::is_same_v<T, Ip6>) {
    F(src), F(dst), F(dscp), F(ecn), F(hop_limit), F(flow_label), F(version), F(payload_length),
        F(next_header);
  } else if constexpr (std::is_same_v<T, HopByHop> || std::is_same_v<T, DestinationOptions>) {
    F(options), F(next_header), F(length);
  } else if constexpr (std::is_same_v<T, Routing>) {
    F(type), F(segments_left), F(data), F(next_header), F(length);
  } else if constexpr (std::is_same_v<T, Fragment6>) {
    F(offset), F(more), F(id), F(reserved), F(reserved_bits), F(next_header);
  } else if constexpr (std::is_same_v<T, Authentication>) {
    F(data), F(next_header), F(length);
  } else if constexpr (std::is_same_v<T, Tcp>) {
    F(sport), F(dport), F(flags), F(seq), F(ack), F(window), F(urgent), F(reserved), F(options),
        F(data_offset), F(checksum);
  } else if constexpr (std::is_same_v<T, Udp>) {
    F(sport), F(dport), F(length), F(checksum);
  } else if constexpr (std::is_same_v<T, Gre>) {
    F(flags), F(protocol);
  } else if constexpr (std::is_same_v<T, Gue0>) {
    F(version_length), F(protocol), F(flags);
  } else if constexpr (std::is_same_v<T, Icmp> || std::is_same_v<T, Icmp6>) {
    F(type), F(code), F(rest), F(checksum);
  } else {
    F(bytes);
  }
#undef F
}

[[nodiscard]] std::string_view name_of(const Layer& layer);

}  // namespace holdfast::dsl

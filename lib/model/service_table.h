// SPDX-License-Identifier: Apache-2.0
// Which service takes a packet: (VIP, protocol, destination port) -> ServiceNumber, exact port over
// range over any, whatever the order of the rules. Built once, then const: any number of readers.
//
// Exact ports, which no other rule can overrule, are in one hash table: nearly every packet is
// answered by one cache line of it. All else is asked of the VIP's own intervals.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "lib/model/numbers.h"
#include "lib/net/address.h"
#include "lib/net/headers.h"

namespace holdfast {

/// Host-order ports, both ends included. {0, 65535} is "any".
struct PortRange {
  std::uint16_t first = 0;
  std::uint16_t last = 65535;

  [[nodiscard]] bool is_any() const { return first == 0 && last == 65535; }
  [[nodiscard]] bool contains(std::uint16_t port) const { return first <= port && port <= last; }
  /// "443", "8000-8999" or "any", as in the configuration.
  [[nodiscard]] std::string text() const;
  friend auto operator<=>(const PortRange&, const PortRange&) = default;
};

struct ServiceRule {
  IpAddress vip{};
  IpProtocol protocol = IpProtocol::tcp;
  PortRange ports{};
  ServiceNumber service = kNoService;
};

/// What a VIP does with packets that are for none of its services.
struct VipOptions {
  bool echo = true;                  // echo requests are answered
  bool reject_unknown_port = false;  // by RST and port unreachable; false: dropped

  friend bool operator==(const VipOptions&, const VipOptions&) = default;
};

struct VipEntry {
  IpAddress address{};
  VipOptions options{};
};

class ServiceTable {
 public:
  struct Match {
    bool is_vip = false;                 // the address is a configured VIP
    ServiceNumber service = kNoService;  // kNoService: no rule has this protocol and port
    VipOptions options{};                // the VIP's, when there is no service
  };

  ServiceTable() = default;
  /// `vips`, each once, may hold addresses without any rule; a rule's VIP that is not among them
  /// has the default options. Requires: no two exact rules and no two ranges of one (VIP, protocol)
  /// overlap (config checks).
  ServiceTable(std::span<const VipEntry> vips, std::span<const ServiceRule> rules);

  [[nodiscard]] Match lookup(const IpAddress& destination, IpProtocol protocol, Be16 port) const {
    const ExactRule wanted = exact_rule(destination, protocol, port);
    for (std::size_t i = place_of(wanted);; i = (i + 1) & exact_mask_) {
      const ExactRule& rule = exact_[i];
      if (rule.is_for(wanted)) return {.is_vip = true, .service = rule.service};
      if (rule.service == kNoService) return lookup_interval(destination, protocol, port);
    }
  }
  [[nodiscard]] bool is_vip(const IpAddress& address) const { return find(address) != nullptr; }
  /// The same for the 4 or 16 bytes of an address as they lie in a packet. Nearly all addresses
  /// that are none are known for it by one bit, without a look at the table.
  [[nodiscard]] bool is_vip(Family family, const std::uint8_t* address) const {
    const bool v4 = family == Family::ipv4;
    std::uint64_t high = 0;
    std::uint64_t low = 0;
    std::memcpy(&high, address, v4 ? 4 : 8);
    if (!v4) std::memcpy(&low, address + 8, 8);
    if (!may_be_vip(high, low)) return false;
    Be32 short_one{};
    IpAddress::Bytes long_one{};
    if (v4) {
      std::memcpy(&short_one, address, sizeof short_one);
      return is_vip(IpAddress::v4(short_one));
    }
    std::memcpy(&long_one, address, sizeof long_one);
    return is_vip(IpAddress::v6(long_one));
  }

 private:
  /// From `first` up to the next interval's first, `service` (kNoService: a gap).
  struct Interval {
    std::uint16_t first;
    ServiceNumber service;
  };
  struct Vip {
    IpAddress address;
    VipOptions options{};
    bool used = false;
    std::vector<Interval> tcp;  // sorted, disjoint; empty: no rule at all
    std::vector<Interval> udp;
  };

  /// What a packet is compared with. 32 bytes, so that none lies across two cache lines.
  struct alignas(32) ExactRule {
    std::uint64_t high = 0;  // the address's 16 bytes
    std::uint64_t low = 0;
    std::uint32_t rest = 0;              // family, protocol, port
    ServiceNumber service = kNoService;  // kNoService: the place is free

    [[nodiscard]] bool is_for(const ExactRule& wanted) const {
      return high == wanted.high && low == wanted.low && rest == wanted.rest;
    }
  };
  /// Without its service. `rest` is never 0, as it is in a free place.
  [[nodiscard]] static ExactRule exact_rule(const IpAddress& address, IpProtocol protocol,
                                            Be16 port) {
    ExactRule rule;
    std::memcpy(&rule.high, address.bytes().data(), 8);
    std::memcpy(&rule.low, address.bytes().data() + 8, 8);
    rule.rest = std::uint32_t{port.raw()} << 16 | static_cast<std::uint32_t>(protocol) << 8 |
                static_cast<std::uint32_t>(address.family());
    return rule;
  }
  /// Only the operator's own rules are in the table, so this need not withstand an attacker.
  [[nodiscard]] std::size_t place_of(const ExactRule& rule) const {
    const std::uint64_t mixed =
        rule.high ^ std::rotl(rule.low, 31) ^ std::uint64_t{rule.rest} * 0xff51afd7ed558ccdu;
    return static_cast<std::size_t>(mixed * 0x9e3779b97f4a7c15u >> 32) & exact_mask_;
  }

  /// Of the address's 16 bytes, as in ExactRule.
  [[nodiscard]] std::uint64_t filter_bit(std::uint64_t high, std::uint64_t low) const {
    return (high ^ std::rotl(low, 31)) * 0x9e3779b97f4a7c15u >> filter_shift_;
  }
  [[nodiscard]] bool may_be_vip(std::uint64_t high, std::uint64_t low) const {
    const std::uint64_t bit = filter_bit(high, low);
    return (filter_[bit / 64] >> bit % 64 & 1) != 0;
  }
  void fill_filter(std::span<const IpAddress> addresses);

  [[nodiscard]] const Vip* find(const IpAddress& address) const;
  [[nodiscard]] Match lookup_interval(const IpAddress& destination, IpProtocol protocol,
                                      Be16 port) const;
  void add_exact(std::span<const ServiceRule> rules);

  // Open addressing, linear probing, a power of two, at most half full.
  std::vector<ExactRule> exact_{1};
  std::size_t exact_mask_ = 0;
  std::vector<Vip> slots_;  // open addressing, linear probing, power of two, at most half full
  std::size_t mask_ = 0;
  // A power of two of bits, at least 16 for each VIP; filter_shift_ leaves so many of 64.
  std::vector<std::uint64_t> filter_{0};
  unsigned filter_shift_ = 58;
};

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// Which service takes a packet: (VIP, protocol, destination port) -> ServiceNumber, exact port over
// range over any, whatever the order of the rules. Built once, then const: any number of readers.
#pragma once

#include <cstdint>
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

class ServiceTable {
 public:
  struct Match {
    bool is_vip = false;                 // the address is a configured VIP
    ServiceNumber service = kNoService;  // kNoService: no rule has this protocol and port
  };

  ServiceTable() = default;
  /// `vips` may hold addresses without any rule; a rule's VIP need not be repeated there.
  /// Requires: no two exact rules and no two ranges of one (VIP, protocol) overlap (config checks).
  ServiceTable(std::span<const IpAddress> vips, std::span<const ServiceRule> rules);

  [[nodiscard]] Match lookup(const IpAddress& destination, IpProtocol protocol, Be16 port) const;
  [[nodiscard]] bool is_vip(const IpAddress& address) const { return find(address) != nullptr; }

 private:
  /// From `first` up to the next interval's first, `service` (kNoService: a gap).
  struct Interval {
    std::uint16_t first;
    ServiceNumber service;
  };
  struct Vip {
    IpAddress address;
    bool used = false;
    std::vector<Interval> tcp;  // sorted, disjoint; empty: no rule at all
    std::vector<Interval> udp;
  };

  [[nodiscard]] const Vip* find(const IpAddress& address) const;

  std::vector<Vip> slots_;  // open addressing, linear probing, power of two, at most half full
  std::size_t mask_ = 0;
};

}  // namespace holdfast

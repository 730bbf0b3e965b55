// SPDX-License-Identifier: Apache-2.0
// Netlink messages as a kernel 6.18 sent them (veth pairs, addresses of the test networks), cut to
// the attributes that are read; VLAN and VRF devices are written by hand after linux/if_link.h,
// because the recording machine's kernel had none.
#include "ctrl/netlink/messages.h"

#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

#include <cerrno>
#include <cstring>

#include "tests/catch.h"

namespace holdfast::netlink {
namespace {

Bytes from_hex(std::string_view hex) {
  Bytes bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

std::vector<Message> parse(std::span<const std::byte> bytes) {
  std::vector<Message> messages;
  parse_messages(bytes, [&](const Message& message) { messages.push_back(message); });
  return messages;
}

template <class Body>
Body only(std::string_view hex, std::size_t messages = 1) {
  const auto all = parse(from_hex(hex));
  REQUIRE(all.size() == messages);
  REQUIRE(std::holds_alternative<Body>(all[0].body));
  return std::get<Body>(all[0].body);
}

IpAddress address(std::string_view text) { return *IpAddress::parse(text); }

/// A message written by hand.
class Written {
 public:
  template <class Header>
  Written(std::uint16_t type, const Header& header) {
    put(nlmsghdr{
        .nlmsg_len = 0, .nlmsg_type = type, .nlmsg_flags = 0, .nlmsg_seq = 0, .nlmsg_pid = 0});
    put(header);
  }
  template <class Value>
  Written& attribute(std::uint16_t type, const Value& value) {
    put(nlattr{static_cast<std::uint16_t>(sizeof(nlattr) + sizeof value), type});
    put(value);
    bytes_.resize((bytes_.size() + 3) & ~std::size_t{3});
    return *this;
  }
  Written& text(std::uint16_t type, std::string_view value) {
    put(nlattr{static_cast<std::uint16_t>(sizeof(nlattr) + value.size() + 1), type});
    for (const char c : value) bytes_.push_back(static_cast<std::byte>(c));
    bytes_.push_back({});
    bytes_.resize((bytes_.size() + 3) & ~std::size_t{3});
    return *this;
  }
  template <class Inside>
  Written& nested(std::uint16_t type, Inside&& inside) {
    const auto start = bytes_.size();
    put(nlattr{0, static_cast<std::uint16_t>(type | NLA_F_NESTED)});
    inside(*this);
    const auto length = static_cast<std::uint16_t>(bytes_.size() - start);
    std::memcpy(bytes_.data() + start, &length, sizeof length);
    return *this;
  }
  Bytes bytes() {
    const auto length = static_cast<std::uint32_t>(bytes_.size());
    std::memcpy(bytes_.data(), &length, sizeof length);
    return bytes_;
  }

 private:
  template <class Value>
  void put(const Value& value) {
    const auto* begin = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), begin, begin + sizeof value);
  }
  Bytes bytes_;
};

constexpr std::string_view kVethLink =
    "5c0000001000020065000000fd70000000000100030000004310010000000000070003006531000008000400dc0500"
    "00"
    "0a00010002000000010100001000120009000100766574680000000008002500000000000800050003000000";
constexpr std::string_view kReachable =
    "4c0000001c00020066000000fd700000020000000200000002000001080001000a0900020a00020002000000000200"
    "00"
    "08000400000000001400030081000000810000008100000001000000";
constexpr std::string_view kIncomplete =
    "400000001c00020066000000fd700000020000000300000001000001080001000a0901030800040005000000140003"
    "00"
    "eb1700007b0000007b00000001000000";
constexpr std::string_view kMultipath =  // 192.0.2.0/24 mtu 1480, two next hops, then the ACK
    "5c0000001800000067000000fd70000002180000fe0300010000000008000f00fe00000008000100c00002000c0008"
    "00"
    "08000200c8050000240009001000000002000000080005000a0900021000000003000000080005000a090102240000"
    "00"
    "0200000167000000fd70000000000000240000001a0005006700000000000000";
constexpr std::string_view kOnLink =  // fibmatch 10.9.1.9: a connected network
    "3c0000001800000069000000fd70000002180000fe02fd010000000008000f00fe000000080001000a090100080007"
    "00"
    "0a0901010800040003000000240000000200000169000000fd70000000000000240000001a00050069000000000000"
    "00";
constexpr std::string_view kViaIpv6 =  // fibmatch 198.51.100.3 via inet6 fd09:1::2
    "4c000000180000006b000000fd70000002180000fe0300010000000008000f00fe00000008000100c6336400160012"
    "00"
    "0a00fd0900010000000000000000000000020000080004000300000024000000020000016b000000fd700000000000"
    "00"
    "240000001a0005006b00000000000000";
constexpr std::string_view kIpv6Multipath =
    "a8000000180000006d000000fd7000000a200000fe0300010000000008000f00fe0000001400010020010db8000000"
    "00"
    "000000000000000008000600000400003c0009001c0000000300000014000500fd0900010000000000000000000000"
    "02"
    "1c0000000200000014000500fd09000000000000000000000000000224000c00000000000000000000000000000000"
    "00"
    "00000000000000000000000000000000050014000000000024000000020000016d000000fd70000000000000300000"
    "00"
    "1a0005006d00000000000000";
constexpr std::string_view kIpv6Chosen =  // without fibmatch: the kernel names the source
    "b0000000180000006e000000fd7000000a808000fe0300010000000008000f00fe0000001400010020010db8000000"
    "00"
    "0000000000000009140002000000000000000000000000000000000014000700fd0900010000000000000000000000"
    "01"
    "080006000004000014000500fd090001000000000000000000000002080004000300000024000c0002000000110000"
    "00"
    "000000000000000000000000000000000000000000000000050014000000000024000000020000016e000000fd7000"
    "00"
    "00000000300000001a0005006e00000000000000";
constexpr std::string_view kOwnAddress =
    "3c000000180000006f000000fd70000002200000fe02fe020000000008000f00fe000000080001000a090001080007"
    "00"
    "0a090001080004000200000024000000020000016f000000fd70000000000000240000001a0005006f000000000000"
    "00";
constexpr std::string_view kUnreachable =
    "380000000200000073000000fd7000009bffffff240000001a00050073000000000000000220000000000000002000"
    "00"
    "0800010064400001";

TEST_CASE("a link is read with name, MAC, MTU and kind, and a parent elsewhere is none") {
  const auto link = only<Link>(kVethLink);
  CHECK(link.index == 3);
  CHECK(link.name == "e1");
  CHECK(link.mac == MacAddress::parse("02:00:00:00:01:01"));
  CHECK(link.mtu == 1500);
  CHECK(link.kind == "veth");
  CHECK(link.up);
  CHECK(link.parent == 0);  // the peer's index, in the peer's namespace
  CHECK_FALSE(link.deleted);
}

TEST_CASE("a VLAN sub-interface is read with its parent and id") {
  ifinfomsg header{};
  header.ifi_index = 9;
  header.ifi_flags = IFF_UP | IFF_RUNNING;
  for (const bool service_tag : {false, true}) {
    const auto bytes =
        Written(RTM_NEWLINK, header)
            .text(IFLA_IFNAME, "eth0.5")
            .attribute(IFLA_LINK, std::uint32_t{2})
            .attribute(IFLA_MASTER, std::uint32_t{7})
            .nested(IFLA_LINKINFO,
                    [&](Written& info) {
                      info.text(IFLA_INFO_KIND, "vlan");
                      info.nested(IFLA_INFO_DATA, [&](Written& data) {
                        data.attribute(IFLA_VLAN_ID, std::uint16_t{5});
                        data.attribute(IFLA_VLAN_PROTOCOL,
                                       Be16::from_host(service_tag ? ETH_P_8021AD : ETH_P_8021Q));
                      });
                    })
            .bytes();
    const auto messages = parse(bytes);
    REQUIRE(messages.size() == 1);
    const auto& link = std::get<Link>(messages[0].body);
    CHECK(link.kind == "vlan");
    CHECK(link.parent == 2);
    CHECK(link.master == 7);
    CHECK(link.vlan == 5);
    CHECK(link.service_tag == service_tag);
  }
}

TEST_CASE("what a bridge says about its ports is not taken for the link itself") {
  ifinfomsg header{};
  header.ifi_family = AF_BRIDGE;
  header.ifi_index = 3;
  CHECK(parse(Written(RTM_DELLINK, header).text(IFLA_IFNAME, "e1").bytes()).empty());
}

TEST_CASE("a neighbour is read with its state, and says whether it may be used") {
  const auto reachable = only<Neighbour>(kReachable);
  CHECK(reachable.link == 2);
  CHECK(reachable.address == address("10.9.0.2"));
  CHECK(reachable.mac == MacAddress::parse("02:00:00:00:00:02"));
  CHECK(reachable.usable());
  CHECK_FALSE(reachable.needs_asking());

  const auto incomplete = only<Neighbour>(kIncomplete);
  CHECK_FALSE(incomplete.usable());
  CHECK_FALSE(incomplete.needs_asking());  // the kernel is at it

  auto stale = reachable;
  stale.state = NUD_STALE;
  CHECK(stale.usable());
  CHECK(stale.needs_asking());
  auto failed = incomplete;
  failed.state = NUD_FAILED;
  CHECK_FALSE(failed.usable());
  CHECK(failed.needs_asking());
}

TEST_CASE("a multipath route gives all its next hops, its MTU, and then its end") {
  const auto route = only<Route>(kMultipath, 2);
  CHECK(route.type == RTN_UNICAST);
  CHECK(route.mtu == 1480);
  REQUIRE(route.hops.size() == 2);
  CHECK(route.hops[0] == Hop{.link = 2, .gateway = address("10.9.0.2")});
  CHECK(route.hops[1] == Hop{.link = 3, .gateway = address("10.9.1.2")});
  const auto end = parse(from_hex(kMultipath))[1];
  CHECK(end.sequence == 0x67);
  CHECK(std::get<End>(end.body).error == 0);
}

TEST_CASE("an IPv6 multipath route gives all its next hops") {
  const auto route = only<Route>(kIpv6Multipath, 2);
  REQUIRE(route.hops.size() == 2);
  CHECK(route.hops[0] == Hop{.link = 3, .gateway = address("fd09:1::2")});
  CHECK(route.hops[1] == Hop{.link = 2, .gateway = address("fd09::2")});
  CHECK_FALSE(route.source);
  CHECK(only<Route>(kIpv6Chosen, 2).source == address("fd09:1::1"));
}

TEST_CASE("a connected network has no gateway, and an IPv4 route may have an IPv6 one") {
  const auto on_link = only<Route>(kOnLink, 2);
  REQUIRE(on_link.hops.size() == 1);
  CHECK(on_link.hops[0] == Hop{.link = 3});
  CHECK(on_link.source == address("10.9.1.1"));

  const auto via = only<Route>(kViaIpv6, 2);
  REQUIRE(via.hops.size() == 1);
  CHECK(via.hops[0] == Hop{.link = 3, .gateway = address("fd09:1::2")});
}

TEST_CASE("the host's own address and an unreachable one are told apart") {
  CHECK(only<Route>(kOwnAddress, 2).type == RTN_LOCAL);
  CHECK(only<End>(kUnreachable).error == ENETUNREACH);
}

TEST_CASE("a message that is cut anywhere is skipped, without reading past its end") {
  for (const auto hex : {kVethLink, kReachable, kMultipath, kIpv6Multipath, kIpv6Chosen}) {
    const auto whole = from_hex(hex);
    for (std::size_t length = 0; length < whole.size(); ++length) {
      // On the heap and of this very size, so that a sanitizer sees any read beyond it.
      const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
      std::uint32_t first = 0;
      std::memcpy(&first, whole.data(), sizeof first);
      CHECK(parse(cut).size() == (length < first ? 0U : 1U));
    }
  }
}

TEST_CASE("lengths that lie inside a message do not lead out of it") {
  const auto whole = from_hex(kIpv6Multipath);
  for (std::size_t i = sizeof(nlmsghdr) + sizeof(rtmsg); i < whole.size(); ++i) {
    for (const auto value : {0x00, 0x01, 0x03, 0x7f, 0xff}) {
      auto bent = whole;
      bent[i] = static_cast<std::byte>(value);
      CHECK(parse(bent).size() <= 2);
    }
  }
}

TEST_CASE("requests are what the kernel expects") {
  const auto route = request_route(7, address("192.0.2.9"), true, 4);
  nlmsghdr header{};
  std::memcpy(&header, route.data(), sizeof header);
  CHECK(header.nlmsg_len == route.size());
  CHECK(header.nlmsg_type == RTM_GETROUTE);
  CHECK(header.nlmsg_seq == 7);
  rtmsg body{};
  std::memcpy(&body, route.data() + sizeof header, sizeof body);
  CHECK(body.rtm_family == AF_INET);
  CHECK(body.rtm_dst_len == 32);
  CHECK((body.rtm_flags & RTM_F_FIB_MATCH) != 0);
  CHECK(request_route(7, address("192.0.2.9"), true, 0).size() == route.size() - 8);  // no OIF

  const auto resolution = request_resolution(8, 3, address("2001:db8::1"));
  ndmsg neighbour{};
  std::memcpy(&neighbour, resolution.data() + sizeof header, sizeof neighbour);
  CHECK(neighbour.ndm_family == AF_INET6);
  CHECK(neighbour.ndm_ifindex == 3);
  CHECK(neighbour.ndm_flags == NTF_USE);
}

}  // namespace
}  // namespace holdfast::netlink

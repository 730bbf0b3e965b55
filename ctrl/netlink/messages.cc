// SPDX-License-Identifier: Apache-2.0
#include "ctrl/netlink/messages.h"

#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace holdfast::netlink {
namespace {

using View = std::span<const std::byte>;

/// The struct at the start of `bytes`, copied: netlink's own alignment is not relied on.
template <class T>
std::optional<T> read(View bytes) {
  if (bytes.size() < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

constexpr std::size_t aligned(std::size_t length) { return (length + 3) & ~std::size_t{3}; }

/// What lies behind `length` bytes and their padding.
View behind(View bytes, std::size_t length) {
  return bytes.subspan(std::min(bytes.size(), aligned(length)));
}

/// Calls each(type, payload) for every attribute; stops at one that is inconsistent.
template <class Each>
void for_each_attribute(View bytes, Each&& each) {
  while (const auto header = read<nlattr>(bytes)) {
    if (header->nla_len < sizeof(nlattr) || header->nla_len > bytes.size()) return;
    each(static_cast<std::uint16_t>(header->nla_type & NLA_TYPE_MASK),
         bytes.subspan(sizeof(nlattr), header->nla_len - sizeof(nlattr)));
    bytes = behind(bytes, header->nla_len);
  }
}

std::string text_of(View payload) {
  const auto* begin = reinterpret_cast<const char*>(payload.data());
  return {begin, std::find(begin, begin + payload.size(), '\0')};
}

std::optional<IpAddress> address_of(int family, View payload) {
  if (family == AF_INET && payload.size() == 4) return IpAddress::v4(*read<Be32>(payload));
  if (family == AF_INET6 && payload.size() == 16) {
    return IpAddress::v6(*read<IpAddress::Bytes>(payload));
  }
  return std::nullopt;
}

MacAddress mac_of(View payload) {
  return payload.size() == 6 ? *read<MacAddress>(payload) : MacAddress{};
}

void read_vlan(View data, Link& link) {
  for_each_attribute(data, [&](std::uint16_t type, View payload) {
    if (type == IFLA_VLAN_ID) link.vlan = read<std::uint16_t>(payload).value_or(0);
    if (type == IFLA_VLAN_PROTOCOL) {
      const auto protocol = read<Be16>(payload);
      link.service_tag = protocol && protocol->host() == ETH_P_8021AD;
    }
  });
}

void read_link_info(View info, Link& link) {
  View data;
  for_each_attribute(info, [&](std::uint16_t type, View payload) {
    if (type == IFLA_INFO_KIND) link.kind = text_of(payload);
    if (type == IFLA_INFO_DATA) data = payload;
  });
  if (link.kind == "vlan") read_vlan(data, link);
}

std::optional<Link> read_link(View payload, bool deleted) {
  const auto header = read<ifinfomsg>(payload);
  // Bridges send link messages of their own family about their ports: not the whole truth.
  if (!header || header->ifi_family != AF_UNSPEC || header->ifi_index <= 0) return std::nullopt;
  Link link{.deleted = deleted, .index = static_cast<std::uint32_t>(header->ifi_index)};
  link.up = (header->ifi_flags & IFF_UP) != 0 && (header->ifi_flags & IFF_RUNNING) != 0;
  bool parent_elsewhere = false;
  for_each_attribute(behind(payload, sizeof *header), [&](std::uint16_t type, View value) {
    switch (type) {
      case IFLA_IFNAME:
        link.name = text_of(value);
        break;
      case IFLA_ADDRESS:
        link.mac = mac_of(value);
        break;
      case IFLA_MTU:
        link.mtu = read<std::uint32_t>(value).value_or(0);
        break;
      case IFLA_LINK:
        link.parent = read<std::uint32_t>(value).value_or(0);
        break;
      case IFLA_LINK_NETNSID:
        parent_elsewhere = true;
        break;
      case IFLA_MASTER:
        link.master = read<std::uint32_t>(value).value_or(0);
        break;
      case IFLA_LINKINFO:
        read_link_info(value, link);
        break;
      default:
        break;
    }
  });
  if (parent_elsewhere) link.parent = 0;  // an index of another namespace means nothing here
  return link;
}

std::optional<Neighbour> read_neighbour(View payload, bool deleted) {
  const auto header = read<ndmsg>(payload);
  if (!header || header->ndm_ifindex <= 0 || (header->ndm_flags & NTF_PROXY) != 0) {
    return std::nullopt;
  }
  Neighbour neighbour{.deleted = deleted,
                      .link = static_cast<std::uint32_t>(header->ndm_ifindex),
                      .state = header->ndm_state};
  std::optional<IpAddress> address;
  for_each_attribute(behind(payload, sizeof *header), [&](std::uint16_t type, View value) {
    if (type == NDA_DST) address = address_of(header->ndm_family, value);
    if (type == NDA_LLADDR) neighbour.mac = mac_of(value);
  });
  if (!address) return std::nullopt;
  neighbour.address = *address;
  return neighbour;
}

/// RTA_VIA: a family (host order) and an address.
std::optional<IpAddress> via_of(View payload) {
  const auto family = read<std::uint16_t>(payload);
  return family ? address_of(*family, payload.subspan(sizeof *family)) : std::nullopt;
}

void read_gateway(int family, std::uint16_t type, View value, Hop& hop) {
  if (type == RTA_GATEWAY) hop.gateway = address_of(family, value);
  if (type == RTA_VIA) hop.gateway = via_of(value);
}

constexpr unsigned kDead = RTNH_F_DEAD | RTNH_F_LINKDOWN;

void read_multipath(int family, View bytes, Route& route) {
  while (const auto header = read<rtnexthop>(bytes)) {
    if (header->rtnh_len < sizeof *header || header->rtnh_len > bytes.size()) return;
    Hop hop{.link = static_cast<std::uint32_t>(header->rtnh_ifindex),
            .dead = (header->rtnh_flags & kDead) != 0};
    for_each_attribute(
        bytes.subspan(sizeof *header, header->rtnh_len - sizeof *header),
        [&](std::uint16_t type, View value) { read_gateway(family, type, value, hop); });
    route.hops.push_back(hop);
    bytes = behind(bytes, header->rtnh_len);
  }
}

std::optional<Route> read_route(View payload, bool deleted) {
  const auto header = read<rtmsg>(payload);
  if (!header || (header->rtm_family != AF_INET && header->rtm_family != AF_INET6)) {
    return std::nullopt;
  }
  const int family = header->rtm_family;
  Route route{.deleted = deleted, .type = header->rtm_type};
  Hop single{.dead = (header->rtm_flags & kDead) != 0};
  for_each_attribute(behind(payload, sizeof *header), [&](std::uint16_t type, View value) {
    switch (type) {
      case RTA_OIF:
        single.link = read<std::uint32_t>(value).value_or(0);
        break;
      case RTA_PREFSRC:
        route.source = address_of(family, value);
        break;
      case RTA_MULTIPATH:
        read_multipath(family, value, route);
        break;
      case RTA_METRICS:
        for_each_attribute(value, [&](std::uint16_t metric, View number) {
          if (metric == RTAX_MTU) route.mtu = read<std::uint32_t>(number).value_or(0);
        });
        break;
      default:
        read_gateway(family, type, value, single);
    }
  });
  if (route.hops.empty() && single.link != 0) route.hops.push_back(single);
  return route;
}

template <class Body>
void give(std::optional<Body> body, Message& message,
          const std::function<void(const Message&)>& each) {
  if (!body) return;
  message.body = std::move(*body);
  each(message);
}

}  // namespace

bool Neighbour::usable() const {
  constexpr unsigned kValid =
      NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_PROBE | NUD_STALE | NUD_DELAY;
  return !deleted && (state & kValid) != 0 && !mac.is_zero();
}

bool Neighbour::needs_asking() const {
  constexpr unsigned kSettledOrAsking =
      NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_PROBE | NUD_DELAY | NUD_INCOMPLETE;
  return deleted || (state & kSettledOrAsking) == 0;
}

void parse_messages(std::span<const std::byte> bytes,
                    const std::function<void(const Message&)>& each) {
  while (const auto header = read<nlmsghdr>(bytes)) {
    if (header->nlmsg_len < sizeof *header || header->nlmsg_len > bytes.size()) return;
    const auto payload = bytes.subspan(sizeof *header, header->nlmsg_len - sizeof *header);
    Message message{.sequence = header->nlmsg_seq,
                    .interrupted = (header->nlmsg_flags & NLM_F_DUMP_INTR) != 0,
                    .body = End{}};
    switch (header->nlmsg_type) {
      case RTM_NEWLINK:
      case RTM_DELLINK:
        give(read_link(payload, header->nlmsg_type == RTM_DELLINK), message, each);
        break;
      case RTM_NEWNEIGH:
      case RTM_DELNEIGH:
        give(read_neighbour(payload, header->nlmsg_type == RTM_DELNEIGH), message, each);
        break;
      case RTM_NEWROUTE:
      case RTM_DELROUTE:
        give(read_route(payload, header->nlmsg_type == RTM_DELROUTE), message, each);
        break;
      case NLMSG_ERROR:
      case NLMSG_DONE: {
        const auto error = read<std::int32_t>(payload).value_or(0);
        message.body = End{error < 0 && error > -4096 ? -error : 0};
        each(message);
        break;
      }
      case NLMSG_OVERRUN:
        message.body = End{ENOBUFS};
        each(message);
        break;
      default:
        break;
    }
    bytes = behind(bytes, header->nlmsg_len);
  }
}

}  // namespace holdfast::netlink

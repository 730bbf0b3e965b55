// SPDX-License-Identifier: Apache-2.0
#include <libmnl/libmnl.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>

#include <array>
#include <cstring>

#include "ctrl/netlink/messages.h"

namespace holdfast::netlink {
namespace {

/// A request under construction, in a buffer that is more than large enough for any of ours.
class Builder {
 public:
  Builder(std::uint16_t type, std::uint16_t flags, std::uint32_t sequence)
      : message_(mnl_nlmsg_put_header(buffer_.data())) {
    message_->nlmsg_type = type;
    message_->nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
    message_->nlmsg_seq = sequence;
  }

  template <class Header>
  Header& header() {
    return *static_cast<Header*>(mnl_nlmsg_put_extra_header(message_, sizeof(Header)));
  }
  void put(std::uint16_t type, const IpAddress& address) {
    mnl_attr_put(message_, type, address.is_v4() ? 4 : 16, address.bytes().data());
  }
  void put(std::uint16_t type, std::uint32_t number) { mnl_attr_put_u32(message_, type, number); }
  [[nodiscard]] Bytes bytes() const {
    const auto* begin = reinterpret_cast<const std::byte*>(message_);
    return {begin, begin + message_->nlmsg_len};
  }

 private:
  alignas(nlmsghdr) std::array<char, 256> buffer_{};
  nlmsghdr* message_;
};

unsigned char family_of(const IpAddress& address) { return address.is_v4() ? AF_INET : AF_INET6; }

}  // namespace

Bytes request_links(std::uint32_t sequence) {
  Builder request(RTM_GETLINK, NLM_F_DUMP, sequence);
  request.header<ifinfomsg>().ifi_family = AF_UNSPEC;
  return request.bytes();
}

Bytes request_neighbours(std::uint32_t sequence) {
  Builder request(RTM_GETNEIGH, NLM_F_DUMP, sequence);
  request.header<ndmsg>().ndm_family = AF_UNSPEC;
  return request.bytes();
}

Bytes request_route(std::uint32_t sequence, const IpAddress& destination, bool fib_match,
                    std::uint32_t vrf) {
  Builder request(RTM_GETROUTE, NLM_F_ACK, sequence);  // so that every answer has an end
  auto& header = request.header<rtmsg>();
  header.rtm_family = family_of(destination);
  header.rtm_dst_len = destination.is_v4() ? 32 : 128;
  if (fib_match) header.rtm_flags = RTM_F_FIB_MATCH;
  request.put(RTA_DST, destination);
  if (vrf != 0) request.put(RTA_OIF, vrf);
  return request.bytes();
}

Bytes request_resolution(std::uint32_t sequence, std::uint32_t link, const IpAddress& address) {
  // Replace, not exclusive: an entry that exists already is meant too.
  Builder request(RTM_NEWNEIGH, NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE, sequence);
  auto& header = request.header<ndmsg>();
  header.ndm_family = family_of(address);
  header.ndm_ifindex = static_cast<int>(link);
  header.ndm_state = NUD_NONE;
  header.ndm_flags = NTF_USE;
  request.put(NDA_DST, address);
  return request.bytes();
}

}  // namespace holdfast::netlink

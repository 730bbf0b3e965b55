// SPDX-License-Identifier: Apache-2.0
#include "ctrl/path_mtu/too_big_socket.h"

#include <fmt/format.h>
#include <linux/filter.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <sys/socket.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace holdfast {
namespace {

/// ICMP_FILTER knows types only, and type 3 has unreachable ports in it. This looks at the code
/// too. It begins at the IP header.
bool filter_v4(int fd) {
  sock_filter program[]{
      BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0),  // x: the IP header's length
      BPF_STMT(BPF_LD | BPF_B | BPF_IND, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ICMP_DEST_UNREACH, 0, 3),
      BPF_STMT(BPF_LD | BPF_B | BPF_IND, 1),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ICMP_FRAG_NEEDED, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, 0xffff),
      BPF_STMT(BPF_RET | BPF_K, 0),
  };
  const sock_fprog whole{.len = std::size(program), .filter = program};
  return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &whole, sizeof whole) == 0;
}

bool filter_v6(int fd) {
  icmp6_filter types;
  ICMP6_FILTER_SETBLOCKALL(&types);
  ICMP6_FILTER_SETPASS(ICMP6_PACKET_TOO_BIG, &types);
  return setsockopt(fd, IPPROTO_ICMPV6, ICMP6_FILTER, &types, sizeof types) == 0;
}

IpAddress address_of(const sockaddr_storage& from) {
  if (from.ss_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, &from, sizeof v4);
    return IpAddress::v4(std::bit_cast<Be32>(v4.sin_addr.s_addr));
  }
  sockaddr_in6 v6;
  std::memcpy(&v6, &from, sizeof v6);
  IpAddress::Bytes bytes;
  std::memcpy(bytes.data(), &v6.sin6_addr, bytes.size());
  return IpAddress::v6(bytes);
}

}  // namespace

Result<TooBigSocket> TooBigSocket::open(Family family) {
  const bool v4 = family == Family::ipv4;
  const auto refused = [v4](int error) {
    const bool permission = error == EPERM || error == EACCES;
    return fail(fmt::format("a raw {} socket: {}", v4 ? "ICMP" : "ICMPv6",
                            std::generic_category().message(error)),
                {}, permission ? "permission" : "refused");
  };
  UniqueFd fd(socket(v4 ? AF_INET : AF_INET6, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
                     v4 ? static_cast<int>(IPPROTO_ICMP) : static_cast<int>(IPPROTO_ICMPV6)));
  if (!fd.valid()) return refused(errno);
  if (!(v4 ? filter_v4(fd.get()) : filter_v6(fd.get()))) return refused(errno);
  return TooBigSocket(family, std::move(fd));
}

bool TooBigSocket::receive(const Taker& take) const {
  // More of a message than this is quoted payload, which nobody looks at; but the checksum of IPv4
  // is over all of it.
  std::array<std::uint8_t, 65536> buffer;
  sockaddr_storage from{};
  socklen_t length = sizeof from;
  const auto size = recvfrom(fd_.get(), buffer.data(), buffer.size(), 0,
                             reinterpret_cast<sockaddr*>(&from), &length);
  if (size < 0) return errno == EINTR;
  take(std::span(buffer).first(static_cast<std::size_t>(size)), address_of(from));
  return true;
}

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
#include "ctrl/netlink/socket.h"

#include <fmt/format.h>
#include <libmnl/libmnl.h>
#include <linux/netlink.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace holdfast::netlink {
namespace {

tl::unexpected<Error> refuse(const char* what) {
  return fail(fmt::format("{}: {}", what, std::generic_category().message(errno)), "netlink");
}

/// Events of a busy host come in bursts; what does not fit costs a full re-read.
constexpr int kReceiveBuffer = 1 << 20;
/// The kernel fills at most 32 KiB of a list at a time.
constexpr std::size_t kDatagram = 64 * 1024;

}  // namespace

void Socket::Close::operator()(mnl_socket* socket) const { mnl_socket_close(socket); }

Result<Socket> Socket::open(std::span<const int> groups) {
  Socket socket(mnl_socket_open2(NETLINK_ROUTE, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!socket.socket_) return refuse("no netlink socket");
  if (mnl_socket_bind(socket.socket_.get(), 0, MNL_SOCKET_AUTOPID) != 0) {
    return refuse("the netlink socket can not be bound");
  }
  for (int group : groups) {
    if (mnl_socket_setsockopt(socket.socket_.get(), NETLINK_ADD_MEMBERSHIP, &group, sizeof group) !=
        0) {
      return refuse("a netlink group can not be joined");
    }
  }
  // FORCE needs CAP_NET_ADMIN; without it the plain one gives as much as is allowed.
  if (setsockopt(socket.fd(), SOL_SOCKET, SO_RCVBUFFORCE, &kReceiveBuffer, sizeof kReceiveBuffer) !=
      0) {
    setsockopt(socket.fd(), SOL_SOCKET, SO_RCVBUF, &kReceiveBuffer, sizeof kReceiveBuffer);
  }
  return socket;
}

int Socket::fd() const { return mnl_socket_get_fd(socket_.get()); }

Socket::Got Socket::receive(const Each& each) {
  std::array<std::byte, kDatagram> buffer;  // NOLINT: filled by the kernel
  const auto got = mnl_socket_recvfrom(socket_.get(), buffer.data(), buffer.size());
  if (got < 0) return errno == EAGAIN || errno == EINTR ? Got::nothing : Got::overrun;
  parse_messages(std::span(buffer).first(static_cast<std::size_t>(got)), each);
  return Got::messages;
}

int Socket::ask(const Bytes& request, std::uint32_t sequence, const Each& each) {
  if (mnl_socket_sendto(socket_.get(), request.data(), request.size()) < 0) return errno;
  std::optional<int> end;
  bool interrupted = false;
  while (!end) {
    const auto got = receive([&](const Message& message) {
      if (message.sequence != sequence) return;  // left over from a request that failed half-way
      interrupted = interrupted || message.interrupted;
      if (const auto* last = std::get_if<End>(&message.body)) {
        end = last->error;
      } else {
        each(message);
      }
    });
    if (got == Got::overrun) return ENOBUFS;
    if (got == Got::nothing) return EAGAIN;
  }
  return *end == 0 && interrupted ? EINTR : *end;
}

}  // namespace holdfast::netlink

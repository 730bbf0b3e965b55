// SPDX-License-Identifier: Apache-2.0
// A thin shell around one rtnetlink socket (libmnl). It never waits: the kernel has queued its
// answer when send() returns. Control thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "ctrl/netlink/messages.h"
#include "lib/base/result.h"

struct mnl_socket;

namespace holdfast::netlink {

class Socket {
 public:
  using Each = std::function<void(const Message&)>;

  /// Joins the multicast `groups` (RTNLGRP_*); none for a socket that only asks.
  [[nodiscard]] static Result<Socket> open(std::span<const int> groups);

  [[nodiscard]] int fd() const;

  enum class Got : std::uint8_t {
    messages,
    nothing,  // none is waiting
    overrun,  // the kernel had to drop some: what is known must be read anew
  };
  /// Takes one datagram.
  Got receive(const Each& each);

  /// Sends `request` and gives the answer's messages up to its end. Returns 0 or the kernel's
  /// errno; EINTR: the list changed while it was read.
  int ask(const Bytes& request, std::uint32_t sequence, const Each& each);

 private:
  struct Close {
    void operator()(mnl_socket* socket) const;
  };
  explicit Socket(mnl_socket* socket) : socket_(socket) {}

  std::unique_ptr<mnl_socket, Close> socket_;
};

}  // namespace holdfast::netlink

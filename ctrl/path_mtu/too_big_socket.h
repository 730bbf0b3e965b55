// SPDX-License-Identifier: Apache-2.0
// A raw socket that gets the kernel's copy of each fragmentation-needed (IPv4) or Packet Too Big
// (IPv6) to this host, and nothing else: a filter in the kernel holds back all other ICMP. Needs
// CAP_NET_RAW. Owned by one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "lib/base/result.h"
#include "lib/base/unique_fd.h"
#include "lib/net/address.h"

namespace holdfast {

class TooBigSocket {
 public:
  /// The error's code is "permission" where CAP_NET_RAW is missing.
  [[nodiscard]] static Result<TooBigSocket> open(Family family);

  /// What to watch for input.
  [[nodiscard]] int fd() const { return fd_.get(); }

  /// Hands the next message to `take`, as read_outer_quote() wants it, with its sender. False:
  /// there is none.
  using Taker = std::function<void(std::span<const std::uint8_t> message, const IpAddress& router)>;
  bool receive(const Taker& take) const;

 private:
  TooBigSocket(Family family, UniqueFd fd) : family_(family), fd_(std::move(fd)) {}

  Family family_;
  UniqueFd fd_;
};

}  // namespace holdfast

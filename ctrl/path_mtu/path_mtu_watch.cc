// SPDX-License-Identifier: Apache-2.0
#include "ctrl/path_mtu/path_mtu_watch.h"

#include <fmt/format.h>
#include <sys/epoll.h>

#include <memory>
#include <system_error>
#include <utility>

namespace holdfast {

PathMtuWatch::PathMtuWatch(Loop& loop, Taker take) : loop_(loop), take_(std::move(take)) {}

PathMtuWatch::~PathMtuWatch() {
  for (const auto& socket : sockets_) loop_.unwatch(socket->fd());
}

Result<void> PathMtuWatch::listen(Family family) {
  auto opened = TooBigSocket::open(family);
  if (!opened) return tl::unexpected<Error>(opened.error());
  auto socket = std::make_unique<TooBigSocket>(std::move(*opened));
  const int error =
      loop_.watch(socket->fd(), EPOLLIN, "path MTU messages",
                  [this, family, one = socket.get()](std::uint32_t) { read(*one, family); });
  if (error != 0)
    return fail("path MTU messages can not be watched: " + std::generic_category().message(error));
  sockets_.push_back(std::move(socket));
  return {};
}

void PathMtuWatch::read(const TooBigSocket& socket, Family family) {
  constexpr int kAtOnce = 64;  // a bounded piece a turn
  for (int i = 0; i < kAtOnce; ++i) {
    const bool more =
        socket.receive([&](std::span<const std::uint8_t> message, const IpAddress& router) {
          on_message(family, message, router);
        });
    if (!more) return;
  }
}

void PathMtuWatch::on_message(Family family, std::span<const std::uint8_t> message,
                              const IpAddress& router) {
  const auto quote = read_outer_quote(family, message);
  if (!quote) {
    switch (quote.error()) {
      case OuterQuoteFault::another_message:
      case OuterQuoteFault::malformed:
        ++counters_.malformed;
        return;
      case OuterQuoteFault::mtu_too_small:
        ++counters_.not_believed;
        return;
    }
    return;
  }
  switch (take_(*quote, router, rate_)) {
    case Taken::learned:
      ++counters_.learned;
      return;
    case Taken::known:
      ++counters_.known;
      return;
    case Taken::not_ours:
      ++counters_.not_ours;
      return;
    case Taken::not_believed:
      ++counters_.not_believed;
      return;
    case Taken::rate_limited:
      ++counters_.rate_limited;
      return;
  }
}

}  // namespace holdfast

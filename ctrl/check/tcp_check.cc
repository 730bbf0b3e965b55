// SPDX-License-Identifier: Apache-2.0
#include "ctrl/check/tcp_check.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "lib/base/unique_fd.h"

namespace holdfast {
namespace {

socklen_t fill(sockaddr_storage& storage, const CheckTarget& target) {
  const auto port = htons(target.port);
  const auto& bytes = target.address.bytes();
  if (target.address.is_v4()) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = port;
    std::memcpy(&address.sin_addr, bytes.data(), 4);
    std::memcpy(&storage, &address, sizeof address);
    return sizeof address;
  }
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = port;
  std::memcpy(&address.sin6_addr, bytes.data(), 16);
  std::memcpy(&storage, &address, sizeof address);
  return sizeof address;
}

/// What a failed connect says. Only our own lack of something is not about the target.
CheckOutcome outcome_of(int error) {
  switch (error) {
    case 0:
      return {.kind = CheckOutcome::Kind::passed};
    case ECONNREFUSED:
      return {.why = "connection refused"};
    case ECONNRESET:
      return {.why = "connection reset"};
    case EHOSTUNREACH:
    case ENETUNREACH:
      return {.why = "no way to the host"};
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOBUFS:
    case EADDRNOTAVAIL:  // all local ports to this target are in use
      return {.kind = CheckOutcome::Kind::not_run, .why = std::generic_category().message(error)};
    default:
      return {.why = std::generic_category().message(error)};
  }
}

class TcpCheck : public RunningCheck {
 public:
  TcpCheck(Loop& loop, const CheckTarget& target, std::chrono::milliseconds timeout, CheckDone done)
      : loop_(loop), done_(std::move(done)) {
    int error = connect_to(target);
    if (error == EINPROGRESS) {
      const int refused = loop_.watch(socket_.get(), EPOLLOUT, "a TCP check",
                                      [this](std::uint32_t) { on_event(); });
      watched_ = refused == 0;
      if (!watched_) error = ENOBUFS;  // our own trouble, whatever the kernel calls it
    }
    if (watched_) {
      timer_ = loop_.call_after(timeout, "a TCP check's deadline", [this, timeout] {
        timer_ = 0;
        finish({.why = fmt::format("no answer within {} ms", timeout.count())});
      });
    } else {  // known at once, told from the loop
      timer_ = loop_.call_after({}, "a TCP check", [this, error] {
        timer_ = 0;
        finish(outcome_of(error));
      });
    }
  }
  ~TcpCheck() override { give_up(); }

 private:
  /// 0, EINPROGRESS, or why not.
  int connect_to(const CheckTarget& target) {
    const int family = target.address.is_v4() ? AF_INET : AF_INET6;
    socket_ = UniqueFd(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket_.valid()) return errno;
    // Closing sends RST and forgets the connection: the side that closes first would otherwise keep
    // it for a minute in TIME_WAIT.
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    sockaddr_storage address{};
    const auto size = fill(address, target);
    return connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0 ? 0
                                                                                          : errno;
  }

  void on_event() {
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
    finish(outcome_of(error));
  }

  void finish(CheckOutcome outcome) {
    give_up();
    const auto done = std::move(done_);  // it may destroy this
    done(std::move(outcome));
  }

  void give_up() {
    if (std::exchange(watched_, false)) loop_.unwatch(socket_.get());
    loop_.cancel(std::exchange(timer_, 0));
    socket_ = UniqueFd();
  }

  Loop& loop_;
  CheckDone done_;
  UniqueFd socket_;
  bool watched_ = false;
  Loop::TimerId timer_ = 0;
};

}  // namespace

std::unique_ptr<RunningCheck> start_tcp_check(Loop& loop, const CheckTarget& target,
                                              const CheckConfig& settings, CheckDone done) {
  return std::make_unique<TcpCheck>(loop, target, settings.timeout, std::move(done));
}

}  // namespace holdfast

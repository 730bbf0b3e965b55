// SPDX-License-Identifier: Apache-2.0
// TCP checks against real sockets on the loopback interface.
#include "ctrl/check/tcp_check.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <vector>

#include "lib/base/unique_fd.h"
#include "tests/catch.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using Kind = CheckOutcome::Kind;

/// A listening socket on 127.0.0.1 or ::1.
struct Listener {
  UniqueFd fd;
  CheckTarget target;

  explicit Listener(bool v6 = false, int backlog = 16) {
    fd = UniqueFd(socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    sockaddr_in6 name{};  // large enough for both
    name.sin6_family = v6 ? AF_INET6 : AF_INET;
    if (v6) {
      name.sin6_addr = in6addr_loopback;
    } else {
      reinterpret_cast<sockaddr_in&>(name).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    }
    socklen_t size = v6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
    REQUIRE(bind(fd.get(), reinterpret_cast<sockaddr*>(&name), size) == 0);
    REQUIRE(listen(fd.get(), backlog) == 0);
    REQUIRE(getsockname(fd.get(), reinterpret_cast<sockaddr*>(&name), &size) == 0);
    target = {*IpAddress::parse(v6 ? "::1" : "127.0.0.1"), ntohs(name.sin6_port), "connect"};
  }
};

/// Runs one check to its end.
CheckOutcome run(const CheckTarget& target, std::chrono::milliseconds timeout = 1000ms) {
  Loop loop;
  std::optional<CheckOutcome> outcome;
  CheckConfig settings;
  settings.timeout = timeout;
  const auto running =
      check_type(CheckKind::tcp).start(loop, target, settings, [&](const CheckOutcome& result) {
        outcome = result;
      });
  CHECK_FALSE(outcome);  // never from within start
  const auto limit = boot_now() + 3s;
  while (!outcome && boot_now() < limit) loop.run_once(50ms);
  REQUIRE(outcome);
  return *outcome;
}

TEST_CASE("a target that accepts passes, over IPv4 and IPv6") {
  for (const bool v6 : {false, true}) {
    const Listener listener(v6);
    CHECK(run(listener.target).kind == Kind::passed);
  }
}

TEST_CASE("a target that refuses fails with that reason") {
  CheckTarget target;
  {
    const Listener listener;
    target = listener.target;
  }
  const auto outcome = run(target);
  CHECK(outcome.kind == Kind::failed);
  CHECK(outcome.why == "connection refused");
}

TEST_CASE("a target that is silent fails at the deadline") {
  // A listener whose queue is full lets the kernel drop further SYNs.
  const Listener listener(false, 0);
  std::vector<UniqueFd> fill;
  for (int i = 0; i < 4; ++i) {
    auto& fd = fill.emplace_back(UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)));
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_port = htons(listener.target.port);
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connect(fd.get(), reinterpret_cast<sockaddr*>(&name), sizeof name);
  }
  const auto start = boot_now();
  const auto outcome = run(listener.target, 150ms);
  CHECK(outcome.kind == Kind::failed);
  CHECK(outcome.why == "no answer within 150 ms");
  CHECK(boot_now() - start >= 150ms);
  CHECK(boot_now() - start < 1s);
}

TEST_CASE("a check ends its connection with RST") {
  const Listener listener;
  REQUIRE(run(listener.target).kind == Kind::passed);
  const UniqueFd accepted(accept(listener.fd.get(), nullptr, nullptr));
  REQUIRE(accepted.valid());
  char byte = 0;
  CHECK(recv(accepted.get(), &byte, 1, 0) == -1);
  CHECK(errno == ECONNRESET);
}

TEST_CASE("a check that is destroyed is given up and never tells") {
  Loop loop;
  const Listener listener;
  bool told = false;
  auto running = start_tcp_check(loop, listener.target, CheckConfig{},
                                 [&](const CheckOutcome&) { told = true; });
  running.reset();
  for (int i = 0; i < 5; ++i) loop.run_once(5ms);
  CHECK_FALSE(told);
}

TEST_CASE("many checks run at once") {
  const Listener listener(false, 512);
  Loop loop;
  std::size_t passed = 0;
  std::vector<std::unique_ptr<RunningCheck>> running;
  running.reserve(200);
  for (int i = 0; i < 200; ++i) {
    running.push_back(start_tcp_check(
        loop, listener.target, CheckConfig{},
        [&](const CheckOutcome& outcome) { passed += outcome.kind == Kind::passed ? 1U : 0U; }));
  }
  const auto limit = boot_now() + 3s;
  while (passed < 200 && boot_now() < limit) loop.run_once(20ms);
  CHECK(passed == 200);
}

}  // namespace
}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// Listens for routers that can not pass our tunnelled packets on. It reads and counts; whether a
// quoted packet is ours, and what follows, is for ControlPlane. Owned by ControlPlane; control
// thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ctrl/loop/loop.h"
#include "ctrl/path_mtu/too_big_socket.h"
#include "lib/base/token_bucket.h"
#include "lib/net/outer_quote.h"

namespace holdfast {

/// What became of the messages. Each is counted under one; none is ever reset.
struct PathMtuCounters {
  std::uint64_t learned = 0;       // a path MTU that is news
  std::uint64_t known = 0;         // what counts already, or more than that
  std::uint64_t not_ours = 0;      // no tunnel of ours sends what is quoted
  std::uint64_t malformed = 0;     // OuterQuoteFault::malformed and another_message
  std::uint64_t not_believed = 0;  // an MTU that no path has, or that would starve IPv6 services
  std::uint64_t rate_limited = 0;  // believed, but more than kRate a second: not taken
};

struct NamedPathMtuCounter {
  std::string_view name;
  std::uint64_t PathMtuCounters::*value;
};
/// For commands, in the order of showing.
inline constexpr NamedPathMtuCounter kPathMtuCounters[]{
    {"learned", &PathMtuCounters::learned},
    {"known", &PathMtuCounters::known},
    {"not_ours", &PathMtuCounters::not_ours},
    {"malformed", &PathMtuCounters::malformed},
    {"not_believed", &PathMtuCounters::not_believed},
    {"rate_limited", &PathMtuCounters::rate_limited},
};

class PathMtuWatch {
 public:
  /// Messages a second, and at once, that quote what we may have sent and are taken. A path tells
  /// its MTU in one, so this is for a site whose whole network has just become smaller. Others take
  /// nothing of it: whoever knows nothing of our tunnels can not make us deaf.
  static constexpr std::uint32_t kRate = 200;

  enum class Taken : std::uint8_t { learned, known, not_ours, not_believed, rate_limited };
  /// Takes a token of `rate` before it changes anything.
  using Taker =
      std::function<Taken(const OuterQuote& quote, const IpAddress& router, TokenBucket& rate)>;

  PathMtuWatch(Loop& loop, Taker take);
  ~PathMtuWatch();
  PathMtuWatch(const PathMtuWatch&) = delete;
  PathMtuWatch& operator=(const PathMtuWatch&) = delete;

  /// Listens for messages about tunnels of a family. The error's code is "permission" where
  /// CAP_NET_RAW is missing; nothing is listened to then.
  [[nodiscard]] Result<void> listen(Family family);

  /// One message, as read_outer_quote() wants it. (What the sockets' callback calls.)
  void on_message(Family family, std::span<const std::uint8_t> message, const IpAddress& router);

  [[nodiscard]] const PathMtuCounters& counters() const { return counters_; }

 private:
  void read(const TooBigSocket& socket, Family family);

  Loop& loop_;
  Taker take_;
  std::vector<std::unique_ptr<TooBigSocket>> sockets_{};
  TokenBucket rate_{kRate};
  PathMtuCounters counters_{};
};

}  // namespace holdfast

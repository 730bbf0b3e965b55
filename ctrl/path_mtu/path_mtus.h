// SPDX-License-Identifier: Apache-2.0
// What routers between here and the backends said about the MTU of the way, each for ten minutes.
// Pure: time is an argument. A value, part of RuntimeState; owned by the control thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>

#include "ctrl/reconcile/numbers.h"
#include "lib/base/instant.h"
#include "lib/net/address.h"

namespace holdfast {

struct LearnedMtu {
  std::uint16_t mtu = 0;  // of the outer packet, IP bytes
  IpAddress router{};     // who said it last
  Instant until{};        // does not count from then on
};

class PathMtus {
 public:
  /// RFC 1191 section 6.3 and RFC 8201 section 4: after ten minutes larger packets may be tried.
  static constexpr std::chrono::minutes kKept{10};

  /// Takes the word of `router`, which has been verified. Never raises what is known and still
  /// counts: that would be about a packet sent before. True: `mtu` is news, and workers must know.
  bool learn(const MembershipKey& backend, std::uint16_t mtu, const IpAddress& router, Instant now);
  /// A word that is not believed. True: it is the first about that address for ten minutes, so the
  /// operator should hear of it.
  bool doubt(const IpAddress& backend, Instant now);

  /// What counts at `now`; null: nothing. Valid until the next learn().
  [[nodiscard]] const LearnedMtu* find(const MembershipKey& backend, Instant now) const;

 private:
  std::map<MembershipKey, LearnedMtu> learned_{};  // never more than there are backends
  std::map<IpAddress, Instant> doubted_{};         // until when it is no news; the same
};

}  // namespace holdfast

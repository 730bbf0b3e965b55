// SPDX-License-Identifier: Apache-2.0
#include "ctrl/path_mtu/path_mtus.h"

namespace holdfast {

bool PathMtus::learn(const MembershipKey& backend, std::uint16_t mtu, const IpAddress& router,
                     Instant now) {
  // Few are known at a time, and this is the one place where their number grows.
  std::erase_if(learned_, [now](const auto& entry) { return entry.second.until <= now; });
  const auto [it, is_new] = learned_.try_emplace(backend);
  LearnedMtu& known = it->second;
  if (!is_new && mtu > known.mtu) return false;
  const bool news = is_new || mtu < known.mtu;
  known = {.mtu = mtu, .router = router, .until = now + kKept};
  return news;
}

bool PathMtus::doubt(const IpAddress& backend, Instant now) {
  std::erase_if(doubted_, [now](const auto& entry) { return entry.second <= now; });
  return doubted_.emplace(backend, now + kKept).second;
}

const LearnedMtu* PathMtus::find(const MembershipKey& backend, Instant now) const {
  const auto it = learned_.find(backend);
  return it == learned_.end() || it->second.until <= now ? nullptr : &it->second;
}

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// A little gobgpd for tests: a RIB with our paths and others', peers, and the faults that a real
// one has. Answers at once and by value; what lies between question and answer (a thread, time, a
// lost connection) is the test's. No I/O, no clock.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ctrl/announce/speaker.h"

namespace holdfast {

struct SpeakerModel {
  enum class Life { absent, hung, running };

  Life life = Life::running;
  BgpIdentity identity{.as = 64512, .router_id = "192.0.2.5"};
  std::map<IpAddress, BgpPeer> peers{};
  std::map<IpAddress, Announcement> rib{};  // local paths by prefix, whoever added them
  bool ignores_adds = false;                // "done", but an import policy drops them
  bool ignores_removals = false;
  bool refuses_adds = false;
  bool hides_rib = false;                          // ListPath fails
  std::set<IpAddress> not_sent{};                  // an export policy drops them
  std::set<IpAddress> touched{};                   // prefixes that an add or a remove was about
  unsigned adds = 0, removals = 0, rib_reads = 0;  // that came in

  [[nodiscard]] static tl::unexpected<Error> away(Life life) {
    return life == Life::hung ? fail("deadline exceeded", {}, "deadline")
                              : fail("connection refused", {}, "unreachable");
  }

  /// kill -9 and start again: only the configuration file is left.
  void restart_empty() {
    rib.clear();
    for (auto& [address, peer] : peers) peer.established = false;
    life = Life::running;
  }
  void connect(const BgpPeer& peer) { peers[peer.address] = peer; }

  [[nodiscard]] Result<BgpIdentity> identify() const {
    if (life != Life::running) return away(life);
    return identity;
  }
  [[nodiscard]] Result<std::vector<BgpPeer>> list_peers() const {
    if (life != Life::running) return away(life);
    std::vector<BgpPeer> result;
    for (const auto& [address, peer] : peers) result.push_back(peer);
    return result;
  }
  [[nodiscard]] Result<void> add(const Announcement& announcement) {
    if (life != Life::running) return away(life);
    ++adds;
    touched.insert(announcement.vip);
    if (refuses_adds) return fail("invalid path");
    if (!ignores_adds) rib[announcement.vip] = announcement;
    return {};
  }
  [[nodiscard]] Result<void> remove(const IpAddress& vip) {
    if (life != Life::running) return away(life);
    ++removals;
    touched.insert(vip);
    if (!ignores_removals) rib.erase(vip);
    return {};
  }
  [[nodiscard]] Result<std::vector<Announcement>> list_rib(Family family,
                                                           const std::vector<IpAddress>& vips) {
    if (life != Life::running) return away(life);
    ++rib_reads;
    if (hides_rib || identity.as == 0) return fail("bgp server hasn't started yet");
    std::vector<Announcement> result;
    for (const auto& vip : vips) {
      const auto it = rib.find(vip);
      if (it != rib.end() && vip.family() == family) result.push_back(it->second);
    }
    return result;
  }
  [[nodiscard]] Result<std::vector<IpAddress>> list_sent(const IpAddress& peer, Family family,
                                                         const std::vector<IpAddress>& vips) const {
    if (life != Life::running) return away(life);
    const auto it = peers.find(peer);
    if (it == peers.end()) return fail("no such neighbor");
    std::vector<IpAddress> result;
    const bool used =
        it->second.established && (family == Family::ipv4 ? it->second.ipv4 : it->second.ipv6);
    std::copy_if(vips.begin(), vips.end(), std::back_inserter(result), [&](const IpAddress& vip) {
      return used && vip.family() == family && rib.contains(vip) && !not_sent.contains(vip);
    });
    return result;
  }
};

}  // namespace holdfast

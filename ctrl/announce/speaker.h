// SPDX-License-Identifier: Apache-2.0
// What the announcer asks of a BGP speaker, in plain types: no gRPC, no gobgpd names. The real one
// is GobgpSpeaker, a fake one serves tests. Calls are made by the control thread and return at
// once; each answer comes later, on the control thread, and exactly once: as a value, or as an
// Error when the speaker refused, could not be reached ("unreachable") or did not answer in time
// ("deadline"). After the destructor no callback comes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/net/address.h"

namespace holdfast {

/// One host route as we want it announced, or as the speaker holds it. A VIP's /32 or /128.
struct Announcement {
  IpAddress vip{};
  IpAddress next_hop{};                      // of the VIP's family, never unspecified
  std::vector<std::uint32_t> communities{};  // RFC 1997, high 16 bits the AS; sorted, no doubles
  std::optional<std::uint32_t> med{};
  std::uint8_t prepend = 0;  // own AS that many times more in the path

  friend bool operator==(const Announcement&, const Announcement&) = default;
};

/// A neighbour of the speaker.
struct BgpPeer {
  IpAddress address{};
  std::uint32_t as = 0;
  bool established = false;
  bool ipv4 = false;  // the family is in use in the session
  bool ipv6 = false;

  friend bool operator==(const BgpPeer&, const BgpPeer&) = default;
};

/// Who the speaker is. `as` 0: it runs, but BGP is not started.
struct BgpIdentity {
  std::uint32_t as = 0;
  std::string router_id{};
};

class BgpSpeaker {
 public:
  template <class T>
  using Answer = std::function<void(Result<T>)>;

  virtual ~BgpSpeaker() = default;

  /// Cheap and always answered within half a second: also the test whether the speaker hangs.
  virtual void identify(Answer<BgpIdentity> answer) = 0;
  virtual void list_peers(Answer<std::vector<BgpPeer>> answer) = 0;
  /// Replaces what the speaker has for the same VIP. "Done" does not mean that it is in the RIB.
  /// `own_as` is what prepends are made of.
  virtual void add(const Announcement& announcement, std::uint32_t own_as, Answer<void> answer) = 0;
  /// What is not there counts as removed.
  virtual void remove(const IpAddress& vip, Answer<void> answer) = 0;
  /// The local paths (not learnt from peers) of the global RIB among `vips`; all of one family.
  /// A path that can not be read as an Announcement is left out and logged.
  virtual void list_rib(Family family, std::vector<IpAddress> vips,
                        Answer<std::vector<Announcement>> answer) = 0;
  /// Which of `vips` (all of one family) were sent to `peer`.
  virtual void list_sent(const IpAddress& peer, Family family, std::vector<IpAddress> vips,
                         Answer<std::vector<IpAddress>> answer) = 0;

  /// A long-lived stream of news about peers. The speaker keeps trying to have one, whatever
  /// happens; `restarted` comes whenever a stream has begun (so: connected, perhaps to a speaker
  /// that has forgotten everything), `changed` when a peer's session changed, `lost` when the
  /// stream ended. Call once.
  struct News {
    std::function<void()> restarted;
    std::function<void()> changed;
    std::function<void(const Error&)> lost;
  };
  virtual void watch(News news) = 0;
};

}  // namespace holdfast

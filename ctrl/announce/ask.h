// SPDX-License-Identifier: Apache-2.0
// What the announcer wants asked of the speaker: the calls of BgpSpeaker as values.
#pragma once

#include <compare>
#include <cstdint>
#include <variant>
#include <vector>

#include "ctrl/announce/speaker.h"

namespace holdfast {

struct AskIdentity {};
struct AskPeers {};
struct AskRib {
  Family family = Family::ipv4;
  std::vector<IpAddress> vips{};
};
struct AskSent {
  IpAddress peer{};
  Family family = Family::ipv4;
  std::vector<IpAddress> vips{};
};
struct AskAdd {
  Announcement announcement{};
  std::uint32_t own_as = 0;
};
struct AskRemove {
  IpAddress vip{};
};

/// Numbers ascend in the order in which things are asked; the answer brings its number back.
using AskNumber = std::uint64_t;

struct Ask {
  AskNumber number = 0;
  std::variant<AskIdentity, AskPeers, AskRib, AskSent, AskAdd, AskRemove> what{};
};

}  // namespace holdfast

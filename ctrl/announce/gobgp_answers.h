// SPDX-License-Identifier: Apache-2.0
// From the messages of gobgpd's API to the plain types of speaker.h. Pure; any thread. What comes
// from gobgpd is not trusted: whatever is malformed, of the wrong type or not asked for is left out
// and told to the `Leave` function. Includes protobuf's headers, so only the speaker and its tests
// include this.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ctrl/announce/speaker.h"
#include "gobgp.pb.h"

namespace holdfast::gobgp {

/// Why something in an answer was left out.
enum class Oddity : std::uint8_t {
  family,
  prefix,
  not_asked,
  identifier,
  attribute,
  next_hop,
  as_path,
  peer,
};
inline constexpr std::size_t kOddities = 8;

/// Ends a sentence that begins "gobgpd answered with".
[[nodiscard]] std::string_view oddity_text(Oddity oddity);

/// Called for each thing that is left out; `detail` is printable and short.
using Leave = std::function<void(Oddity, const std::string& detail)>;

/// protobuf would write a line to standard error for each text that is not UTF-8. Whole process.
void silence_protobuf();

[[nodiscard]] BgpIdentity read_identity(const apipb::GetBgpResponse& answer);

[[nodiscard]] std::optional<BgpPeer> read_peer(const apipb::Peer& peer, const Leave& leave);

/// What list_rib() and list_sent() are about.
struct Asked {
  Family family = Family::ipv4;
  std::vector<IpAddress> vips{};  // sorted
  std::uint32_t own_as = 0;       // what prepends must be made of; 0: any one AS
};

/// The local paths of one destination that are as we would announce them.
[[nodiscard]] std::vector<Announcement> read_rib(const apipb::Destination& destination,
                                                 const Asked& asked, const Leave& leave);
/// The VIP of a destination, if a local path is among its paths.
[[nodiscard]] std::optional<IpAddress> read_sent(const apipb::Destination& destination,
                                                 const Asked& asked, const Leave& leave);

}  // namespace holdfast::gobgp

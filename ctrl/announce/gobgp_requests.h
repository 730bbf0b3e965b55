// SPDX-License-Identifier: Apache-2.0
// From the plain types of speaker.h to the messages of gobgpd's API. Pure; any thread. Includes
// protobuf's headers, so only the speaker and its tests include this.
#pragma once

#include <cstdint>
#include <vector>

#include "ctrl/announce/speaker.h"
#include "gobgp.pb.h"

namespace holdfast::gobgp {

/// The length of a prefix that is one host.
[[nodiscard]] constexpr std::uint32_t host_length(Family family) {
  return family == Family::ipv4 ? 32 : 128;
}

/// Refuses what gobgpd would take and a router would answer by ending the session: it checks next
/// to nothing itself.
[[nodiscard]] Result<apipb::AddPathRequest> add_request(const Announcement& announcement,
                                                        std::uint32_t own_as);
/// Has a path always: without one gobgpd deletes all local paths.
[[nodiscard]] Result<apipb::DeletePathRequest> delete_request(const IpAddress& vip);

/// What the global RIB holds of `vips`.
/// Requires: `vips` is not empty (gobgpd would list everything), all are of `family`.
[[nodiscard]] apipb::ListPathRequest rib_request(Family family, const std::vector<IpAddress>& vips);
/// What was sent to `peer` of `vips`. Requires: as rib_request().
[[nodiscard]] apipb::ListPathRequest sent_request(const IpAddress& peer, Family family,
                                                  const std::vector<IpAddress>& vips);

}  // namespace holdfast::gobgp

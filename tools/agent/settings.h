// SPDX-License-Identifier: Apache-2.0
// What one interface shall decapsulate, read from the command line's words, and its form as keys of
// the program's maps. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/net/address.h"
#include "tools/agent/decap_shared.h"

namespace holdfast::agent {

/// Each list is sorted and holds nothing twice.
struct DecapSettings {
  std::vector<IpAddress> vips;    // inner destinations that are taken; at least one
  std::vector<Prefix> lbs;        // outer sources that are believed; at least one
  std::vector<IpAddress> locals;  // outer destinations that are ours

  friend bool operator==(const DecapSettings&, const DecapSettings&) = default;
};

/// Errors (code "usage"): a word that is no address, an address that can be no VIP or no endpoint
/// of a tunnel, more of them than the maps hold. `locals` may be empty: the interface's are meant
/// then.
[[nodiscard]] Result<DecapSettings> read_settings(const std::vector<std::string>& vips,
                                                  const std::vector<std::string>& lbs,
                                                  const std::vector<std::string>& locals);

/// A sentence about settings that are allowed but leave the backend open; empty if none are.
[[nodiscard]] std::string warning_of(const DecapSettings& settings);

[[nodiscard]] holdfast_address to_key(const IpAddress& address);
[[nodiscard]] holdfast_prefix to_key(const Prefix& prefix);
[[nodiscard]] IpAddress from_key(const holdfast_address& key);
[[nodiscard]] Prefix from_key(const holdfast_prefix& key);

}  // namespace holdfast::agent

// SPDX-License-Identifier: Apache-2.0
#include "lib/maglev/maglev.h"

#include <xxhash.h>

#include <algorithm>
#include <array>

#include "lib/maglev/populate.h"

namespace holdfast {

namespace {

/// Family (4 or 6), then the 16 bytes of IpAddress::bytes(). Part of placement: a change moves the
/// flows of a whole fleet.
using IdentityBytes = std::array<std::uint8_t, 17>;

IdentityBytes identity_of(const IpAddress& address) {
  IdentityBytes bytes{static_cast<std::uint8_t>(address.family())};
  std::copy(address.bytes().begin(), address.bytes().end(), bytes.begin() + 1);
  return bytes;
}

MaglevCandidate candidate_of(const MaglevBackend& backend, HashSeed seed, std::uint32_t size) {
  const IdentityBytes bytes = identity_of(backend.address);
  const XXH128_hash_t hash = XXH3_128bits_withSeed(bytes.data(), bytes.size(), seed.value);
  return {.offset = static_cast<std::uint32_t>(hash.low64 % size),
          .skip = static_cast<std::uint32_t>(hash.high64 % (size - 1) + 1),
          .weight = backend.weight};
}

/// Indices of the backends that contend, by address: turns are taken in this order.
template <class Contends>
std::vector<std::uint16_t> by_address(std::span<const MaglevBackend> backends, Contends contends) {
  std::vector<std::uint16_t> order;
  for (std::size_t i = 0; i < backends.size(); ++i)
    if (backends[i].weight > 0 && contends(i)) order.push_back(static_cast<std::uint16_t>(i));
  std::sort(order.begin(), order.end(), [&](std::uint16_t a, std::uint16_t b) {
    return backends[a].address < backends[b].address;
  });
  return order;
}

template <class Contends>
MaglevTable build_among(std::span<const MaglevBackend> backends, HashSeed seed, std::uint32_t size,
                        Contends contends) {
  const auto order = by_address(backends, contends);
  std::vector<MaglevCandidate> candidates;
  candidates.reserve(order.size());
  for (const auto index : order) candidates.push_back(candidate_of(backends[index], seed, size));
  MaglevTable table = populate_maglev(candidates, size);
  for (auto& owner : table) owner = order[owner];
  return table;
}

}  // namespace

MaglevTable build_maglev(std::span<const MaglevBackend> backends, HashSeed seed,
                         std::uint32_t size) {
  return build_among(backends, seed, size, [](std::size_t) { return true; });
}

MaglevTable overlay_maglev(const MaglevTable& base, std::span<const MaglevBackend> backends,
                           const std::vector<bool>& eligible, HashSeed seed) {
  const bool any_out =
      std::any_of(base.begin(), base.end(), [&](std::uint16_t owner) { return !eligible[owner]; });
  if (!any_out) return base;
  MaglevTable table = build_among(backends, seed, static_cast<std::uint32_t>(base.size()),
                                  [&](std::size_t i) { return eligible[i]; });
  // Empty when nobody is left. Where the base owner is eligible, it stays, whatever the table of
  // the eligible ones alone says.
  for (std::size_t slot = 0; slot < table.size(); ++slot)
    if (eligible[base[slot]]) table[slot] = base[slot];
  return table;
}

std::uint64_t maglev_digest(const MaglevTable& table, std::span<const MaglevBackend> backends) {
  std::vector<IdentityBytes> identities;
  identities.reserve(backends.size());
  for (const auto& backend : backends) identities.push_back(identity_of(backend.address));
  // In pieces, each seeded by the digest so far: a large table would be 11 MB in one.
  constexpr std::size_t kPiece = 4096;
  std::vector<IdentityBytes> piece;
  piece.reserve(kPiece);
  std::uint64_t digest = 0;
  for (std::size_t slot = 0; slot < table.size(); ++slot) {
    piece.push_back(identities[table[slot]]);
    if (piece.size() < kPiece && slot + 1 < table.size()) continue;
    digest = XXH3_64bits_withSeed(piece.data(), piece.size() * sizeof(IdentityBytes), digest);
    piece.clear();
  }
  return digest;
}

bool is_prime(std::uint32_t value) {
  if (value < 4) return value >= 2;
  if (value % 2 == 0) return false;
  for (std::uint32_t divisor = 3; std::uint64_t{divisor} * divisor <= value; divisor += 2)
    if (value % divisor == 0) return false;
  return true;
}

}  // namespace holdfast

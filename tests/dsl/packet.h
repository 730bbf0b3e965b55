// SPDX-License-Identifier: Apache-2.0
// A packet as a sentence: layers joined with '/', lengths and checksums filled in, damage explicit.
//
//   const Packet syn = Ip4{.dst = "203.0.113.10"} / Tcp{.dport = 80, .flags = Syn};
//   (Eth{} / syn).padded_to(60);  (Eth{} / syn).cut_to(33);  (Eth{} / syn).bad_checksum();
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "tests/dsl/layers.h"

namespace holdfast::dsl {

template <class T>
concept LayerType = std::is_constructible_v<Layer, T>;

class Packet {
 public:
  Packet() = default;
  /// A single layer is a packet, too. NOLINTNEXTLINE(google-explicit-constructor)
  Packet(LayerType auto layer) : layers_{Layer(std::move(layer))} {}
  explicit Packet(std::vector<Layer> layers) : layers_(std::move(layers)) {}

  /// The bytes on the wire. A packet may start at any layer: an inner packet at its IP header.
  [[nodiscard]] Bytes bytes() const;
  [[nodiscard]] std::size_t size() const { return bytes().size(); }
  [[nodiscard]] const std::vector<Layer>& layers() const& { return layers_; }
  /// Of a temporary by value, so that a loop over dissect(...).layers() does not dangle.
  [[nodiscard]] std::vector<Layer> layers() && { return std::move(layers_); }

  /// Damage and surroundings; each returns a changed copy.
  /// Only the first `size` bytes arrive.
  [[nodiscard]] Packet cut_to(std::size_t size) const;
  /// The first IPv4 header's checksum is wrong.
  [[nodiscard]] Packet bad_checksum() const;
  /// Ethernet padding up to `size` bytes, not zeros: who looks at it shall notice.
  [[nodiscard]] Packet padded_to(std::size_t size) const;
  /// `back` behind this one.
  [[nodiscard]] Packet then(const Packet& back) const;

 private:
  std::vector<Layer> layers_{};
  std::optional<std::size_t> cut_{};
};

/// A function of the namespace, so that two bare layers find it too.
[[nodiscard]] inline Packet operator/(const Packet& front, const Packet& back) {
  return front.then(back);
}

/// `size` bytes with a pattern in which each place differs from its neighbours.
[[nodiscard]] Raw payload(std::size_t size);
/// The first `size` bytes of a packet (it starts with its IP header), as ICMP errors quote it.
[[nodiscard]] Raw quote(const Packet& packet, std::size_t size = SIZE_MAX);

}  // namespace holdfast::dsl

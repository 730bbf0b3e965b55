// SPDX-License-Identifier: Apache-2.0
#include "tests/dsl/packet.h"

#include <algorithm>

namespace holdfast::dsl {

Packet Packet::cut_to(std::size_t size) const {
  Packet result = *this;
  result.cut_ = size;
  return result;
}

Packet Packet::bad_checksum() const {
  Packet result = *this;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const auto* ip = std::get_if<Ip4>(&layers_[i]);
    if (ip == nullptr) continue;
    const auto from = layers_.begin() + static_cast<std::ptrdiff_t>(i);
    const Bytes bytes = Packet(std::vector<Layer>(from, layers_.end())).bytes();
    const auto good = static_cast<std::uint16_t>(bytes[10] << 8 | bytes[11]);
    std::get<Ip4>(result.layers_[i]).checksum = static_cast<std::uint16_t>(good ^ 0x5555);
    return result;
  }
  throw std::logic_error("bad_checksum() wants an IPv4 header");
}

Packet Packet::padded_to(std::size_t size) const {
  Packet result = *this;
  const std::size_t now = this->size();
  if (now < size) result.layers_.push_back(Padding{Bytes(size - now, 0xaa)});
  return result;
}

Packet Packet::then(const Packet& back) const {
  Packet result = *this;
  result.layers_.insert(result.layers_.end(), back.layers_.begin(), back.layers_.end());
  result.cut_ = back.cut_;
  return result;
}

Raw payload(std::size_t size) {
  Raw raw{Bytes(size)};
  for (std::size_t i = 0; i < size; ++i) raw.bytes[i] = static_cast<std::uint8_t>(i * 7 + 1);
  return raw;
}

Raw quote(const Packet& packet, std::size_t size) {
  Bytes bytes = packet.bytes();
  bytes.resize(std::min(size, bytes.size()));
  return Raw{bytes};
}

}  // namespace holdfast::dsl

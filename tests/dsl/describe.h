// SPDX-License-Identifier: Apache-2.0
// Bytes -> the notation of packet.h, and where two packets first differ.
#pragma once

#include <span>
#include <string>

#include "tests/dsl/packet.h"

namespace holdfast::dsl {

/// The layers of a frame with every field's value. Lossless: dissect(b).bytes() == b for any bytes;
/// what fits no layer is Raw.
[[nodiscard]] Packet dissect(std::span<const std::uint8_t> frame);

/// The same as one would write it: a field that has its computed value is left open.
[[nodiscard]] Packet decode(std::span<const std::uint8_t> frame);

/// As a test would write it: `Eth{} / Ip4{.src = "192.0.2.1"} / Tcp{.flags = Syn}`.
[[nodiscard]] std::string describe(const Packet& packet);
[[nodiscard]] std::string describe(std::span<const std::uint8_t> frame);

/// "0a0b0c"
[[nodiscard]] std::string hex(std::span<const std::uint8_t> bytes);

/// A line for scapy that rebuilds the frame.
[[nodiscard]] std::string scapy_line(std::span<const std::uint8_t> frame);

/// "Ip4.ttl: 63, expected 64"; empty when the frames are equal.
[[nodiscard]] std::string first_difference(std::span<const std::uint8_t> frame,
                                           std::span<const std::uint8_t> expected);

/// For a failed comparison: both frames in the notation, the first difference, the scapy line.
[[nodiscard]] std::string explain_mismatch(std::span<const std::uint8_t> frame,
                                           std::span<const std::uint8_t> expected);

}  // namespace holdfast::dsl

// SPDX-License-Identifier: Apache-2.0
#include "tests/dsl/sane_end.h"

#include <algorithm>
#include <stdexcept>

#include "tests/dsl/describe.h"

namespace holdfast::dsl {

namespace {

/// The bytes of the IP packet that a frame carries, by its own length field; nothing when it has
/// none. Written apart from the product's parser.
std::span<const std::uint8_t> ip_packet(std::span<const std::uint8_t> frame) {
  for (std::size_t at = 12; at + 2 <= frame.size(); at += 4) {
    const unsigned type = frame[at] * 256u + frame[at + 1];
    if (type == 0x8100 || type == 0x88a8) continue;
    const auto ip = frame.subspan(at + 2);
    const auto length_at = [&ip](std::size_t offset, std::size_t more) {
      return std::min<std::size_t>(ip[offset] * 256u + ip[offset + 1] + more, ip.size());
    };
    if (type == 0x0800 && ip.size() >= 20) return ip.first(length_at(2, 0));
    if (type == 0x86dd && ip.size() >= 40) return ip.first(length_at(4, 40));
    return {};
  }
  return {};
}

/// What the outer IP header of a frame carries.
std::span<const std::uint8_t> tunnelled_packet(std::span<const std::uint8_t> frame) {
  const auto outer = ip_packet(frame);
  if (outer.empty()) return {};
  return outer.subspan(outer[0] >> 4 == 4 ? 20 : 40);
}

[[noreturn]] void refuse(const char* what, std::span<const std::uint8_t> frame,
                         const Handled& handled) {
  throw std::logic_error(std::string(what) + ": " + describe(frame) + "\nbecame " +
                         describe(handled.frame) + "\nscapy " + scapy_line(frame));
}

}  // namespace

Handled require_sane_end(LbUnderTest& lb, std::span<const std::uint8_t> frame,
                         const MbufShape& shape) {
  Handled handled = lb.handle(frame, shape);
  switch (handled.kind) {
    case Handled::Kind::sent:
      if (!std::ranges::equal(tunnelled_packet(handled.frame), ip_packet(frame)))
        refuse("changed in the tunnel", frame, handled);
      break;
    case Handled::Kind::to_kernel:
      if (!std::ranges::equal(handled.frame, frame))
        refuse("changed on the way to the kernel", frame, handled);
      break;
    case Handled::Kind::dropped:
      break;
  }
  return handled;
}

}  // namespace holdfast::dsl

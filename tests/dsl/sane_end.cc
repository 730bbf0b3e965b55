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
  const bool v4 = outer[0] >> 4 == 4;
  const auto inside = outer.subspan(v4 ? 20 : 40);
  switch (outer[v4 ? 9 : 6]) {
    case 47:  // GRE
      return inside.subspan(4);
    case 17:  // GUE: the inner IP version, or zeros for a header
      return inside.subspan(inside.size() > 8 && inside[8] >> 4 == 0 ? 12 : 8);
    default:
      return inside;
  }
}

/// Whether these packets are fragments (RFC 791) of `whole`, in order and without a gap.
bool are_fragments_of(std::span<const std::uint8_t> whole,
                      const std::vector<std::span<const std::uint8_t>>& fragments) {
  const auto header = [](auto ip) { return (ip[0] & 0xfu) * 4u; };
  const auto word = [](auto ip, std::size_t at) { return ip[at] * 256u + ip[at + 1]; };
  unsigned offset = (word(whole, 6) & 0x1fff) * 8;
  Bytes payload;
  for (const auto& fragment : fragments) {
    const bool last = &fragment == &fragments.back();
    const auto data = fragment.subspan(header(fragment));
    // The last one ends as the packet did; nobody else touched the flags, and all else is the same.
    const unsigned more = last ? word(whole, 6) & 0x2000 : 0x2000;
    if (word(fragment, 6) != ((word(whole, 6) & 0xc000) | more | offset / 8) ||
        word(fragment, 2) != fragment.size() || (!last && data.size() % 8 != 0) ||
        fragment[1] != whole[1] ||
        !std::ranges::equal(fragment.subspan(4, 2), whole.subspan(4, 2)) ||
        !std::ranges::equal(fragment.subspan(8, 2), whole.subspan(8, 2)) ||
        !std::ranges::equal(fragment.subspan(12, 8), whole.subspan(12, 8)))
      return false;
    payload.insert(payload.end(), data.begin(), data.end());
    offset += static_cast<unsigned>(data.size());
  }
  return std::ranges::equal(payload, whole.subspan(header(whole)));
}

[[noreturn]] void refuse(const char* what, std::span<const std::uint8_t> frame,
                         const Handled& handled) {
  throw std::logic_error(std::string(what) + ": " + describe(frame) + "\nbecame " +
                         describe(handled.frame) + "\nscapy " + scapy_line(frame));
}

/// Whether the Internet checksum in a transport header holds (RFC 1071), with the pseudo header
/// where there is one.
bool checksum_holds(std::span<const std::uint8_t> ip, std::span<const std::uint8_t> segment,
                    unsigned protocol) {
  std::uint64_t sum = 0;
  const auto add = [&sum](std::span<const std::uint8_t> bytes) {
    for (std::size_t i = 0; i < bytes.size(); i += 2)
      sum += bytes[i] * 256u + (i + 1 < bytes.size() ? bytes[i + 1] : 0u);
  };
  add(segment);
  if (protocol != 1) {
    add(ip[0] >> 4 == 4 ? ip.subspan(12, 8) : ip.subspan(8, 32));
    sum += segment.size() + protocol;
  }
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return sum == 0xffff;
}

/// An answer comes from the VIP and goes to who sent, with good lengths and checksums; an error
/// quotes the packet as it came, and a pong has all that was in the ping.
const char* fault_of_answer(std::span<const std::uint8_t> frame,
                            std::span<const std::uint8_t> answer) {
  const auto got = ip_packet(frame);
  const auto ip = ip_packet(answer);
  if (!std::ranges::equal(answer.first(6), frame.subspan(6, 6)) ||
      !std::ranges::equal(answer.subspan(6, 6), frame.first(6)))
    return "its MAC addresses are not those of the packet, turned around";
  if (ip.empty() || ip.data() + ip.size() != answer.data() + answer.size())
    return "its length is wrong";
  const bool v4 = ip[0] >> 4 == 4;
  const std::size_t header = v4 ? 20 : 40;
  const std::size_t source = v4 ? 12 : 8;
  const std::size_t width = v4 ? 4 : 16;
  if (ip[0] >> 4 != got[0] >> 4 ||
      !std::ranges::equal(ip.subspan(source, width), got.subspan(source + width, width)) ||
      !std::ranges::equal(ip.subspan(source + width, width), got.subspan(source, width)))
    return "it is not from the VIP to who sent";
  if (v4 && (ip[0] != 0x45 || !checksum_holds(ip, ip.first(header), 1)))
    return "its header is not plain and good";
  const unsigned protocol = v4 ? ip[9] : ip[6];
  const auto segment = ip.subspan(header);
  const bool pong = protocol != 6 && segment[0] == (v4 ? 0 : 129);
  if (pong) {
    const auto ping = got.last(segment.size());
    if (!std::ranges::equal(segment.subspan(4), ping.subspan(4))) return "it lost what was in it";
    if (checksum_holds(got, ping, protocol) != checksum_holds(ip, segment, protocol))
      return "its checksum is not as good as the request's";
    return nullptr;
  }
  if (!checksum_holds(ip, segment, protocol)) return "its checksum is wrong";
  if (protocol == 6) return segment.size() == 20 ? nullptr : "it is no bare reset";
  const auto quoted = segment.subspan(8);
  const std::size_t longest = v4 ? 576 : 1280;
  if (ip.size() > longest || quoted.size() > got.size() ||
      !std::ranges::equal(quoted, got.first(quoted.size())))
    return "it does not quote the packet";
  // Packets in one buffer are quoted as far as there is room.
  if (ip.size() != longest && quoted.size() != got.size()) return "it quotes too little";
  return nullptr;
}

void require_sane(std::span<const std::uint8_t> frame, const Handled& handled) {
  switch (handled.kind) {
    case Handled::Kind::sent:
      if (!handled.more.empty()) {
        std::vector fragments{tunnelled_packet(handled.frame)};
        for (const Bytes& more : handled.more) fragments.push_back(tunnelled_packet(more));
        if (!are_fragments_of(ip_packet(frame), fragments))
          refuse("torn in the tunnel", frame, handled);
        break;
      }
      if (!std::ranges::equal(tunnelled_packet(handled.frame), ip_packet(frame)))
        refuse("changed in the tunnel", frame, handled);
      break;
    case Handled::Kind::answered:
      if (const char* fault = fault_of_answer(frame, handled.frame)) refuse(fault, frame, handled);
      break;
    case Handled::Kind::to_kernel:
      if (!std::ranges::equal(handled.frame, frame))
        refuse("changed on the way to the kernel", frame, handled);
      break;
    case Handled::Kind::dropped:
    case Handled::Kind::held:
      break;
  }
}

}  // namespace

Handled require_sane_end(LbUnderTest& lb, std::span<const std::uint8_t> frame,
                         const MbufShape& shape) {
  Handled handled = lb.handle(frame, shape);
  require_sane(frame, handled);
  // What it has released had to wait, and is judged like any other.
  for (const auto& released : lb.take_released_frames())
    require_sane(released.came_as, released.handled);
  return handled;
}

}  // namespace holdfast::dsl

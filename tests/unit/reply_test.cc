// SPDX-License-Identifier: Apache-2.0
// What a VIP says back to a packet's sender, byte for byte against packets that the tests' own
// encoder makes, checksums included; and when it says nothing.
#include "lib/net/reply.h"

#include <algorithm>
#include <optional>

#include "tests/catch.h"
#include "tests/dsl/describe.h"
#include "tests/dsl/packet.h"

using namespace holdfast;
using namespace holdfast::dsl;

namespace {

const Ip client4 = "198.51.100.7";
const Ip client6 = "2001:db8:51::7";
const Ip vip4 = "203.0.113.10";
const Ip vip6 = "2001:db8::10";

constexpr Answer kReset{AnswerKind::reset, 0};
constexpr Answer kPortUnreachable{AnswerKind::port_unreachable, 0};
constexpr Answer kEcho{AnswerKind::echo_reply, 0};
constexpr Answer too_big(std::uint16_t mtu) { return {AnswerKind::too_big, mtu}; }

/// A received packet with just the room in front of it that an answer may use.
class Buffer {
 public:
  explicit Buffer(const Packet& packet) {
    const Bytes frame = (Eth{} / packet).bytes();
    REQUIRE(parse_packet(frame, parsed_).vip_known);
    bytes_.resize(kReplyRoom);
    bytes_.insert(bytes_.end(), frame.begin() + parsed_.l3_offset, frame.end());
  }
  [[nodiscard]] Received received(std::size_t in_a_row = SIZE_MAX) {
    return {.ip = bytes_.data() + kReplyRoom,
            .available = std::min(in_a_row, bytes_.size() - kReplyRoom),
            .packet = parsed_};
  }
  [[nodiscard]] ParsedPacket& parsed() { return parsed_; }

 private:
  ParsedPacket parsed_;
  Bytes bytes_;
};

/// The bytes of the answer; nothing if none is allowed.
std::optional<Bytes> answer_to(const Packet& packet, Answer answer, Sender sender = {}) {
  Buffer buffer(packet);
  if (!may_answer(answer.kind, buffer.received(), sender)) return std::nullopt;
  const Reply reply = write_reply(answer, buffer.received());
  return Bytes(reply.ip, reply.ip + reply.length);
}

/// For a readable failure: both sides as sentences.
void check_answer(const Packet& packet, Answer answer, const Packet& expected) {
  const auto got = answer_to(packet, answer);
  REQUIRE(got.has_value());
  const auto frame = [](const Packet& ip) {
    const std::uint16_t type = ip.bytes().at(0) >> 4 == 4 ? 0x0800 : 0x86dd;
    return (Eth{.type = type} / ip).bytes();
  };
  INFO("answer to " << describe(packet) << '\n'
                    << explain_mismatch(frame(Raw{*got}), frame(expected)));
  CHECK(*got == expected.bytes());
}

Ip4 from_vip4() { return {.src = vip4, .dst = client4}; }
Ip6 from_vip6() { return {.src = vip6, .dst = client6}; }
/// Precedence 6.
Ip4 error_from_vip4() { return {.src = vip4, .dst = client4, .dscp = 48}; }
Ip6 error_from_vip6() { return {.src = vip6, .dst = client6, .dscp = 48}; }

}  // namespace

TEST_CASE("a packet too big in IPv4 is answered with fragmentation needed and its MTU") {
  const Packet packet = Ip4{} / Tcp{.flags = Ack} / payload(1460);
  check_answer(packet, too_big(1480),
               error_from_vip4() / Icmp{.type = 3, .code = 4, .rest = 1480} / quote(packet, 548));
  check_answer(packet, too_big(1400),
               error_from_vip4() / Icmp{.type = 3, .code = 4, .rest = 1400} / quote(packet, 548));
}

TEST_CASE("a packet too big in IPv6 is answered with Packet Too Big and its MTU") {
  const Packet packet = Ip6{} / Tcp{.flags = Ack} / payload(1440);
  check_answer(packet, too_big(1460),
               error_from_vip6() / Icmp6{.type = 2, .rest = 1460} / quote(packet, 1232));
}

TEST_CASE("UDP to a port without service is answered with port unreachable") {
  const Packet v4 = Ip4{} / Udp{.dport = 9} / payload(20);
  check_answer(v4, kPortUnreachable, error_from_vip4() / Icmp{.type = 3, .code = 3} / quote(v4));
  const Packet v6 = Ip6{} / Udp{.dport = 9} / payload(20);
  check_answer(v6, kPortUnreachable, error_from_vip6() / Icmp6{.type = 1, .code = 4} / quote(v6));
}

TEST_CASE("an error quotes all of a packet, or as much as makes 576 or 1280 bytes") {
  for (std::size_t size = 0; size < 1500; ++size) {
    CAPTURE(size);
    const Packet v4 = Ip4{} / Udp{} / payload(size);
    const auto error4 = answer_to(v4, kPortUnreachable);
    REQUIRE(error4);
    REQUIRE(error4->size() == std::min<std::size_t>(576, 28 + v4.size()));
    REQUIRE(std::equal(error4->begin() + 28, error4->end(), v4.bytes().begin()));
    const Packet v6 = Ip6{} / Udp{} / payload(size);
    const auto error6 = answer_to(v6, kPortUnreachable);
    REQUIRE(error6);
    REQUIRE(error6->size() == std::min<std::size_t>(1280, 48 + v6.size()));
    REQUIRE(std::equal(error6->begin() + 48, error6->end(), v6.bytes().begin()));
  }
}

TEST_CASE("an error quotes options and extension headers, and no Ethernet padding") {
  const Packet v4 = Ip4{.options = {7, 7, 4, 0, 0, 0, 0, 0}} / Udp{};
  check_answer(v4.padded_to(80), kPortUnreachable,
               error_from_vip4() / Icmp{.type = 3, .code = 3} / quote(v4));
  const Packet v6 = Ip6{} / HopByHop{} / DestinationOptions{} / Udp{};
  check_answer(v6.padded_to(200), kPortUnreachable,
               error_from_vip6() / Icmp6{.type = 1, .code = 4} / quote(v6));
}

TEST_CASE("an error quotes what lies in a row when a packet is spread over buffers") {
  const Packet packet = Ip4{} / Udp{} / payload(400);
  Buffer buffer(packet);
  const Reply reply = write_reply(kPortUnreachable, buffer.received(101));
  const Packet expected = error_from_vip4() / Icmp{.type = 3, .code = 3} / quote(packet, 101);
  CHECK(Bytes(reply.ip, reply.ip + reply.length) == expected.bytes());
}

TEST_CASE("a reset acknowledges what came without an ACK") {
  const auto acknowledged = [](const Tcp& tcp, std::size_t data) {
    const Packet v4 = Ip4{} / tcp / payload(data);
    const auto reset = answer_to(v4, kReset);
    REQUIRE(reset);
    std::uint32_t ack = 0;
    for (std::size_t i = 28; i < 32; ++i) ack = ack << 8 | reset->at(i);
    return ack;
  };
  // RFC 9293 3.10.7.1: SEG.SEQ + SEG.LEN, in which SYN and FIN count one each.
  CHECK(acknowledged({.flags = Syn, .seq = 1000}, 0) == 1001);
  CHECK(acknowledged({.flags = Syn | Fin, .seq = 1000}, 5) == 1007);
  CHECK(acknowledged({.flags = Fin, .seq = 1000}, 0) == 1001);
  CHECK(acknowledged({.flags = 0, .seq = 1000}, 0) == 1000);
  CHECK(acknowledged({.flags = Psh, .seq = 0xffffffff, .options = Bytes(12, 1)}, 3) == 2);

  const Packet syn4 =
      Ip4{} / Tcp{.sport = 5, .dport = 6, .flags = Syn, .seq = 7, .options = {2, 4, 5, 180}};
  check_answer(
      syn4, kReset,
      from_vip4() /
          Tcp{.sport = 6, .dport = 5, .flags = Rst | Ack, .seq = 0, .ack = 8, .window = 0});
  const Packet syn6 = Ip6{.dscp = 10} / Tcp{.sport = 5, .dport = 6, .flags = Syn, .seq = 7};
  check_answer(
      syn6, kReset,
      Ip6{.src = vip6, .dst = client6, .dscp = 10} /
          Tcp{.sport = 6, .dport = 5, .flags = Rst | Ack, .seq = 0, .ack = 8, .window = 0});
}

TEST_CASE("a reset to a segment with an ACK stands where the sender expects the next byte") {
  const Packet v4 = Ip4{.dscp = 10, .ecn = 3, .options = Bytes(8, 1)} /
                    Tcp{.flags = Ack | Psh, .seq = 5, .ack = 0x89abcdef, .options = Bytes(12, 1)} /
                    payload(99);
  check_answer(v4, kReset,
               Ip4{.src = vip4, .dst = client4, .dscp = 10} /
                   Tcp{.sport = 80, .dport = 40000, .flags = Rst, .seq = 0x89abcdef, .window = 0});
  const Packet v6 = Ip6{} / DestinationOptions{} / Tcp{.flags = Ack | Syn, .seq = 5, .ack = 77};
  check_answer(
      v6, kReset,
      from_vip6() / Tcp{.sport = 80, .dport = 40000, .flags = Rst, .seq = 77, .window = 0});
}

TEST_CASE("an echo request comes back with all that was in it") {
  for (const std::size_t size : {0u, 1u, 56u, 57u, 1472u}) {
    const Packet v4 = Ip4{.dscp = 46, .ecn = 1, .id = 99, .df = false} /
                      Icmp{.type = 8, .rest = 0x12345678} / payload(size);
    check_answer(v4, kEcho,
                 Ip4{.src = vip4, .dst = client4, .dscp = 46, .id = 99, .df = false} /
                     Icmp{.type = 0, .rest = 0x12345678} / payload(size));
    const Packet v6 =
        Ip6{.dscp = 46, .flow_label = 7} / Icmp6{.type = 128, .rest = 0x12345678} / payload(size);
    check_answer(v6, kEcho,
                 Ip6{.src = vip6, .dst = client6, .dscp = 46} /
                     Icmp6{.type = 129, .rest = 0x12345678} / payload(size));
  }
}

TEST_CASE("an echo request with options or extension headers is answered without them") {
  check_answer(Ip4{.options = Bytes(40, 1)} / Icmp{.type = 8, .rest = 1} / payload(9), kEcho,
               from_vip4() / Icmp{.type = 0, .rest = 1} / payload(9));
  check_answer(Ip6{} / HopByHop{} / Icmp6{.type = 128, .rest = 1} / payload(9), kEcho,
               from_vip6() / Icmp6{.type = 129, .rest = 1} / payload(9));
}

TEST_CASE("an echo reply of nothing but zeros has the checksum that says so") {
  // RFC 1624 by the letter ends at 0000 here, which is wrong: all that is summed up is zero.
  for (const std::size_t size : {0u, 1u, 64u})
    check_answer(Ip4{} / Icmp{.type = 8} / Raw{Bytes(size)}, kEcho,
                 from_vip4() / Icmp{.type = 0} / Raw{Bytes(size)});
  check_answer(Ip4{} / Icmp{.type = 8} / Raw{{0xff, 0xff}}, kEcho,
               from_vip4() / Icmp{.type = 0} / Raw{{0xff, 0xff}});
}

TEST_CASE("an echo request whose checksum is wrong comes back with a wrong one") {
  const Packet request = Ip4{} / Icmp{.type = 8, .rest = 1, .checksum = 0x1234} / payload(9);
  const auto reply = answer_to(request, kEcho);
  REQUIRE(reply);
  const Packet good = from_vip4() / Icmp{.type = 0, .rest = 1} / payload(9);
  CHECK(*reply != good.bytes());
}

TEST_CASE("what must not be answered is not") {
  const Packet big4 = Ip4{} / Tcp{} / payload(1460);
  const Packet big6 = Ip6{} / Tcp{} / payload(1440);
  REQUIRE(answer_to(big4, too_big(1400)));
  REQUIRE(answer_to(big6, too_big(1400)));

  SECTION("ICMP errors") {
    const Packet error4 = Ip4{} / Icmp{.type = 3, .code = 4} /
                          quote(Ip4{.src = vip4, .dst = client4} / Tcp{} / payload(1400));
    CHECK_FALSE(answer_to(error4, too_big(576)));
    const Packet error6 = Ip6{} / Icmp6{.type = 1} / quote(from_vip6() / Tcp{} / payload(1400));
    CHECK_FALSE(answer_to(error6, too_big(1280)));
  }
  SECTION("frames to a broadcast or multicast address, and from one") {
    for (const auto& packet : {big4, big6}) {
      CHECK_FALSE(answer_to(packet, too_big(1400), {.to_group = true}));
      CHECK_FALSE(answer_to(packet, kReset, {.to_group = true}));
    }
  }
  SECTION("what claims to come from a VIP") {
    CHECK_FALSE(answer_to(big4, too_big(1400), {.is_vip = true}));
    CHECK_FALSE(answer_to(big6, kReset, {.is_vip = true}));
  }
  SECTION("a later IPv4 fragment; a later IPv6 fragment may be too big") {
    Buffer later4(big4);
    later4.parsed().part = FragmentPart::later;
    CHECK_FALSE(may_answer(AnswerKind::too_big, later4.received(), {}));
    CHECK_FALSE(may_answer(AnswerKind::port_unreachable, later4.received(), {}));
    Buffer later6(big6);
    later6.parsed().part = FragmentPart::later;
    CHECK(may_answer(AnswerKind::too_big, later6.received(), {}));
  }
  SECTION("a first fragment by a reset or an echo reply") {
    Buffer first(big4);
    first.parsed().part = FragmentPart::first;
    CHECK(may_answer(AnswerKind::too_big, first.received(), {}));
    CHECK(may_answer(AnswerKind::port_unreachable, first.received(), {}));
    CHECK_FALSE(may_answer(AnswerKind::reset, first.received(), {}));
    CHECK_FALSE(may_answer(AnswerKind::echo_reply, first.received(), {}));
  }
  SECTION("a reset") {
    CHECK_FALSE(answer_to(Ip4{} / Tcp{.flags = Rst}, kReset));
    CHECK_FALSE(answer_to(Ip6{} / Tcp{.flags = Rst | Ack}, kReset));
  }
  SECTION("an IPv4 header with a wrong checksum") {
    CHECK_FALSE(answer_to(big4.bad_checksum(), too_big(1400)));
    CHECK_FALSE(answer_to(big4.bad_checksum(), kReset));
  }
  SECTION("sources that name no one host") {
    for (const char* source : {"0.0.0.0", "0.1.2.3", "127.0.0.1", "224.0.0.1", "239.1.2.3",
                               "240.0.0.1", "255.255.255.255", "203.0.113.10"}) {
      CAPTURE(source);
      CHECK_FALSE(answer_to(Ip4{.src = source} / Udp{}, kPortUnreachable));
    }
    for (const char* source : {"::", "::1", "ff02::1", "ff0e::1", "::ffff:198.51.100.7",
                               "::198.51.100.7", "2001:db8::10"}) {
      CAPTURE(source);
      CHECK_FALSE(answer_to(Ip6{.src = source} / Udp{}, kPortUnreachable));
    }
  }
}

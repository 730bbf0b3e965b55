// SPDX-License-Identifier: Apache-2.0
// The short way through the parser never says anything else than the long one.
#include "lib/net/parse_plain.h"

#include <algorithm>
#include <random>

#include "tests/catch.h"
#include "tests/dsl/samples.h"

using namespace holdfast;
using namespace holdfast::dsl;

namespace {

/// All that later stages may look at.
bool same(const ParsedPacket& one, const ParsedPacket& other) {
  return one.kind == other.kind && one.family == other.family && one.tcp_flags == other.tcp_flags &&
         one.traffic_class == other.traffic_class && one.has_payload == other.has_payload &&
         one.dont_fragment == other.dont_fragment && one.l3_offset == other.l3_offset &&
         one.l4_offset == other.l4_offset && one.part == other.part &&
         one.authenticated == other.authenticated && one.ip_length == other.ip_length &&
         one.protocol == other.protocol && one.service_port == other.service_port &&
         one.vip == other.vip && std::ranges::equal(one.key.bytes(), other.key.bytes());
}

/// Whether the short way took it; fails when the long way has another opinion.
bool taken(const Bytes& frame) {
  // What an earlier packet left behind must not shine through.
  ParsedPacket plain{.kind = PacketKind::icmp_error,
                     .family = Family::ipv6,
                     .tcp_flags = 0xff,
                     .traffic_class = 0xff,
                     .has_payload = true,
                     .part = FragmentPart::later,
                     .authenticated = true,
                     .l3_offset = 99,
                     .vip = IpAddress::parse("2001:db8:ffff:ffff:ffff:ffff:ffff:ffff").value()};
  if (!parse_plain(frame, plain)) return false;
  ParsedPacket full;
  const ParseResult result = parse_packet(frame, full);
  CHECK_FALSE(result.verdict.decided());
  CHECK(result.vip_known);
  CHECK(same(plain, full));
  return true;
}

bool taken(const Packet& packet) { return taken(packet.bytes()); }

}  // namespace

TEST_CASE("plain TCP and UDP of both families take the short way") {
  CHECK(taken((Eth{} / Ip4{} / Tcp{.flags = Syn})));
  CHECK(taken((Eth{} / Ip4{.dscp = 46, .ecn = 1, .df = false} / Tcp{} / payload(300))));
  CHECK(taken((Eth{} / Ip4{} / Tcp{.flags = Ack}).padded_to(60)));
  CHECK(taken((Eth{} / Ip4{} / Udp{} / payload(100))));
  CHECK(taken((Eth{} / Ip4{} / Udp{}).padded_to(60)));
  CHECK(taken((Eth{} / Ip6{.dscp = 46, .flow_label = 99} / Tcp{.flags = Fin | Ack})));
  CHECK(taken((Eth{} / Ip6{} / Udp{} / payload(1200))));
}

TEST_CASE("what is not plain does not take the short way") {
  CHECK_FALSE(taken((Eth{} / Ip4{} / Udp{})));  // 42 bytes: no NIC gives so few
  CHECK_FALSE(taken((Eth{} / Vlan{.id = 7} / Ip4{} / Tcp{})));
  CHECK_FALSE(taken((Eth{} / Ip4{.options = {1, 1, 1, 0}} / Tcp{})));
  CHECK_FALSE(taken((Eth{} / Ip4{.more_fragments = true} / Tcp{})));
  CHECK_FALSE(taken((Eth{} / Ip4{.fragment_offset = 1, .protocol = 6} / payload(64))));
  CHECK_FALSE(taken((Eth{} / Ip4{.src = "127.0.0.1"} / Tcp{})));
  CHECK_FALSE(taken((Eth{} / Ip6{} / HopByHop{} / Tcp{})));
  CHECK_FALSE(taken((Eth{} / Ip6{.src = "::1"} / Tcp{})));
  CHECK_FALSE(taken((Eth{} / Ip6{.src = "ff02::1"} / Tcp{})));
  CHECK_FALSE(taken(Bytes{}));
}

TEST_CASE("the short way agrees with the long one whatever a packet is damaged by") {
  std::mt19937 random(1);
  std::vector<Bytes> frames;
  for (const Packet& packet : sample_packets()) frames.push_back(packet.bytes());
  frames.push_back((Eth{} / Ip4{} / Tcp{} / payload(30)).bytes());
  frames.push_back((Eth{} / Ip4{} / Udp{} / payload(30)).bytes());
  frames.push_back((Eth{} / Ip6{} / Tcp{} / payload(30)).bytes());
  frames.push_back((Eth{} / Ip6{} / Udp{} / payload(30)).bytes());
  std::size_t short_way = 0;
  constexpr std::size_t kRounds = 40'000;
  for (std::size_t round = 0; round < kRounds; ++round) {
    Bytes frame = frames[random() % frames.size()];
    for (std::size_t changes = random() % 3; changes > 0; --changes) {
      const std::size_t at = random() % std::min<std::size_t>(frame.size(), 74);
      frame[at] =
          static_cast<std::uint8_t>(random() % 4 == 0 ? frame[at] ^ 1u << random() % 8 : random());
    }
    if (random() % 8 == 0) frame.resize(random() % (frame.size() + 16));
    short_way += taken(frame);
  }
  CHECK(short_way > kRounds / 20);  // else the test would say nothing
}

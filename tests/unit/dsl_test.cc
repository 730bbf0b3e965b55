// SPDX-License-Identifier: Apache-2.0
// The packet DSL itself: what tests rely on must be right on its own.
#include <algorithm>
#include <random>

#include "tests/catch.h"
#include "tests/dsl/describe.h"
#include "tests/dsl/pcap.h"
#include "tests/dsl/samples.h"

using namespace holdfast;
using namespace holdfast::dsl;

TEST_CASE("an IPv4 TCP packet has the bytes that another program wrote") {
  // Python: struct.pack of the fields of RFC 791 and RFC 9293, checksums by its own loop.
  const auto packet = Ip4{.src = "198.51.100.7", .dst = "203.0.113.10"} / Tcp{.flags = Syn};
  CHECK(hex(packet.bytes()) ==
        "4500002800004000"
        "4006d48a"
        "c6336407"
        "cb00710a"
        "9c400050"
        "00000001"
        "00000000"
        "5002ffff"
        "ad0b0000");
}

TEST_CASE("lengths and protocol numbers are computed from what follows") {
  const auto packet = Eth{} / Vlan{.id = 7} / Ip6{} / HopByHop{} / Udp{} / payload(10);
  const Bytes bytes = packet.bytes();
  CHECK(hex(std::span(bytes).subspan(12, 6)) ==
        "8100"
        "0007"
        "86dd");
  CHECK(hex(std::span(bytes).subspan(18 + 4, 3)) ==
        "001a"
        "00");  // 8 + 8 + 10, hop-by-hop
  CHECK(bytes[58] == 17);
  CHECK(hex(std::span(bytes).subspan(66 + 4, 2)) == "0012");
}

TEST_CASE("padding is counted by no length") {
  const auto plain = Eth{} / Ip4{} / Tcp{};
  const Bytes padded = plain.padded_to(60).bytes();
  CHECK(padded.size() == 60);
  CHECK(std::ranges::equal(std::span(padded).first(54), plain.bytes()));
  CHECK(plain.padded_to(10).size() == 54);
}

TEST_CASE("damage is where it was asked for") {
  const auto plain = Eth{} / Ip4{} / Tcp{};
  CHECK(plain.cut_to(33).size() == 33);
  CHECK(plain.cut_to(100).size() == 54);
  const Bytes good = plain.bytes();
  const Bytes bad = plain.bad_checksum().bytes();
  for (std::size_t i = 0; i < good.size(); ++i) {
    CAPTURE(i);
    CHECK((good[i] != bad[i]) == (i == 24 || i == 25));
  }
}

TEST_CASE("an address that is none is refused when the test starts") {
  CHECK_THROWS_AS(Ip("203.0.113"), std::invalid_argument);
}

TEST_CASE("decoding is lossless for every sample packet, mutated or not") {
  std::mt19937 random(1);
  for (const Packet& packet : sample_packets()) {
    const Bytes bytes = packet.bytes();
    CHECK(hex(decode(bytes).bytes()) == hex(bytes));
    for (int round = 0; round < 300; ++round) {
      Bytes mutated = bytes;
      for (int i = 0; i < 3; ++i)
        mutated[random() % std::min<std::size_t>(mutated.size(), 80)] =
            static_cast<std::uint8_t>(random());
      if (round % 3 == 0) mutated.resize(random() % mutated.size());
      REQUIRE(hex(decode(mutated).bytes()) == hex(mutated));
    }
  }
}

TEST_CASE("a packet is described as it was written, defaults left out") {
  const auto packet = Eth{} / Ip4{.src = "192.0.2.1", .ttl = 3} /
                      Tcp{.dport = 443, .flags = Syn | Ack} / Raw{{1, 2, 255}};
  CHECK(describe(packet.bytes()) ==
        R"(Eth{.src = "02:00:00:00:00:fe", .dst = "02:00:00:00:00:01"} / )"
        R"(Ip4{.src = "192.0.2.1", .dst = "203.0.113.10", .ttl = 3} / )"
        R"(Tcp{.dport = 443, .flags = Syn | Ack} / Raw{.bytes = 3 bytes 0102ff})");
}

TEST_CASE("a wrong checksum or length shows in the description, a right one does not") {
  CHECK(describe((Eth{} / Ip4{} / Tcp{}).bytes()).find("checksum") == std::string::npos);
  CHECK(describe((Eth{} / Ip4{} / Tcp{}).bad_checksum().bytes()).find(".checksum = 0x") !=
        std::string::npos);
  CHECK(describe((Eth{} / Ip4{.total_length = 400} / Tcp{} / payload(4)).bytes())
            .find(".total_length = 400") != std::string::npos);
}

TEST_CASE("the first field that differs is named") {
  const auto difference = [](const Packet& got, const Packet& expected) {
    return first_difference(got.bytes(), expected.bytes());
  };
  const auto plain = Eth{} / Ip4{} / Tcp{};
  CHECK(difference(plain, plain).empty());
  CHECK(difference(Eth{} / Ip4{.ttl = 63} / Tcp{}, plain) == "Ip4.ttl: 63, expected 64");
  CHECK(difference(plain, Eth{} / Vlan{.id = 5} / Ip4{} / Tcp{}) == "layer 2: Ip4, expected Vlan");
  CHECK(difference(plain, plain / payload(2)) == "no Raw at the end");
  CHECK(difference(plain.bad_checksum(), plain).find("Ip4.checksum: 0x") == 0);
}

TEST_CASE("pcap files of both byte orders and with nanoseconds are read") {
  const auto file = [](bool big_endian, std::uint32_t magic, std::uint32_t link_type,
                       const Bytes& record) {
    Bytes bytes;
    const auto put = [&](std::uint32_t value, int width) {
      for (int i = 0; i < width; ++i)
        bytes.push_back(static_cast<std::uint8_t>(value >> 8 * (big_endian ? width - 1 - i : i)));
    };
    put(magic, 4);
    put(2, 2), put(4, 2), put(0, 4), put(0, 4), put(65535, 4), put(link_type, 4);
    for (int copies = 0; copies < 2; ++copies) {
      put(1, 4), put(2, 4), put(static_cast<std::uint32_t>(record.size()), 4), put(1500, 4);
      bytes.insert(bytes.end(), record.begin(), record.end());
    }
    return bytes;
  };
  const auto frame = Eth{} / Ip4{} / Udp{} / payload(7);
  for (const bool big_endian : {false, true})
    for (const std::uint32_t magic : {0xa1b2c3d4u, 0xa1b23c4du}) {
      const auto frames = read_pcap(file(big_endian, magic, 1, frame.bytes()));
      REQUIRE(frames.size() == 2);
      CHECK(hex(frames[1]) == hex(frame.bytes()));
    }
  const auto inner = Ip6{} / Udp{};
  const auto raw = read_pcap(file(false, 0xa1b2c3d4, 101, inner.bytes()));
  CHECK(describe(raw.at(0)) == describe((Eth{} / inner).bytes()));
  const auto ppp =
      read_pcap(file(true, 0xa1b2c3d4, 9, (Raw{{0xff, 0x03, 0x00, 0x57}} / inner).bytes()));
  CHECK(describe(ppp.at(0)) == describe((Eth{} / inner).bytes()));

  Bytes cut = file(false, 0xa1b2c3d4, 1, frame.bytes());
  cut.pop_back();
  CHECK_THROWS_AS(read_pcap(cut), std::runtime_error);
  CHECK_THROWS_AS(read_pcap(Bytes(24)), std::runtime_error);
  CHECK_THROWS_AS(read_pcap(Bytes(3)), std::runtime_error);
  CHECK_THROWS_AS(read_pcap(file(false, 0xa1b2c3d4, 147, frame.bytes())), std::runtime_error);
}

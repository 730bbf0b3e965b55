// SPDX-License-Identifier: Apache-2.0
// Whatever comes in has a sane end (tests/dsl/sane_end.h). LbUnderTest requires the counter
// identity and that each buffer is given back once; the sanitizers see reads outside a packet.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <set>

#include "tests/dsl/expect.h"
#include "tests/dsl/pcap.h"
#include "tests/dsl/samples.h"
#include "tests/dsl/sane_end.h"

using namespace holdfast;
using namespace holdfast::dsl;

namespace {

class Mutator {
 public:
  explicit Mutator(unsigned seed) : engine_(seed) {}

  std::size_t below(std::size_t limit) { return engine_() % limit; }
  std::uint8_t byte() { return static_cast<std::uint8_t>(engine_()); }

  /// One to four changes of the kinds that break parsers.
  Bytes mutate(Bytes bytes) {
    for (std::size_t changes = 1 + below(4); changes > 0 && !bytes.empty(); --changes) {
      const std::size_t at = place(bytes);
      const auto where = bytes.begin() + static_cast<std::ptrdiff_t>(at);
      switch (below(8)) {
        case 0:
          bytes[at] = byte();
          break;
        case 1:
          bytes[at] = static_cast<std::uint8_t>(bytes[at] ^ 1u << below(8));
          break;
        case 2:
          bytes[at] = below(2) == 0 ? 0 : 0xff;
          break;
        case 3:
          bytes[at] = static_cast<std::uint8_t>(bytes[at] + (below(2) == 0 ? 1 : -1));
          break;
        case 4:
          bytes.resize(at);
          break;
        case 5:
          bytes.erase(where);
          break;
        case 6:
          bytes.insert(where, byte());
          break;
        case 7:
          bytes.resize(bytes.size() + below(64));
          break;
      }
    }
    return bytes;
  }

 private:
  /// Mostly in the headers.
  std::size_t place(const Bytes& bytes) {
    const std::size_t limit =
        below(4) == 0 ? bytes.size() : std::min<std::size_t>(bytes.size(), 74);
    return below(limit);
  }

  std::mt19937 engine_;
};

int rounds() {
  const char* text = std::getenv("HOLDFAST_RANDOM_ROUNDS");
  return text == nullptr ? 100'000 : std::atoi(text);
}

/// Services on every address that packets of a capture are sent to, so that all of it is ours.
std::vector<ServiceSpec> services_for(const std::vector<Bytes>& frames) {
  std::set<IpAddress> destinations;
  for (const Bytes& frame : frames)
    for (const Layer& layer : dissect(frame).layers()) {
      if (const auto* ip4 = std::get_if<Ip4>(&layer)) destinations.insert(ip4->dst);
      if (const auto* ip6 = std::get_if<Ip6>(&layer)) destinations.insert(ip6->dst);
    }
  const std::vector<Ip> vips(destinations.begin(), destinations.end());
  const Hop wide{.mtu = 9000};
  return {
      ServiceSpec{.vips = vips, .ports = tcp_any()}.to(backend("192.0.2.21").over({wide})),
      ServiceSpec{.vips = vips, .ports = udp_any()}.to(backend("2001:db8:100::22").over({wide})),
  };
}

std::vector<Bytes> read_capture(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const Bytes bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return read_pcap(bytes);
}

}  // namespace

TEST_CASE("each sample packet has a sane end") {
  LbUnderTest lb(sample_services(), {});
  for (const Packet& packet : sample_packets()) require_sane_end(lb, packet.bytes());
  CHECK(lb.counters().forwarded > sample_packets().size() / 2);
}

TEST_CASE("each prefix of each sample packet has a sane end") {
  LbUnderTest lb(sample_services(), {.icmp_relay_rate = 1'000'000});
  for (const Packet& packet : sample_packets()) {
    const Bytes whole = packet.bytes();
    for (std::size_t size = 0; size <= whole.size(); ++size)
      require_sane_end(lb, Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)));
  }
}

TEST_CASE("a sample packet has a sane end with any one byte of its headers changed to anything") {
  LbUnderTest lb(sample_services(), {.icmp_relay_rate = 100'000'000});
  for (const Packet& packet : sample_packets()) {
    Bytes bytes = packet.bytes();
    for (std::size_t at = 12; at < std::min<std::size_t>(bytes.size(), 90); ++at) {
      const std::uint8_t kept = bytes[at];
      for (unsigned value = 0; value < 256; ++value) {
        bytes[at] = static_cast<std::uint8_t>(value);
        require_sane_end(lb, bytes);
      }
      bytes[at] = kept;
    }
  }
}

TEST_CASE("mutated packets have a sane end") {
  LbUnderTest lb(sample_services(), {.icmp_relay_rate = 100'000'000});
  Mutator random(20261129);
  const auto samples = sample_packets();
  const int count = rounds();
  for (int i = 0; i < count; ++i)
    require_sane_end(lb, random.mutate(samples[random.below(samples.size())].bytes()));

  // The mutations reach all of the parser, not only its front door.
  const PacketCounters counters = lb.counters();
  CHECK(counters.forwarded > counters.received / 20);
  CHECK(counters.to_kernel > counters.received / 20);
  std::size_t reasons = 0;
  for (const auto dropped_for : counters.dropped) reasons += dropped_for > 0 ? 1 : 0;
  CHECK(reasons >= 20);
}

TEST_CASE("random bytes behind a good Ethernet header have a sane end") {
  LbUnderTest lb(sample_services(), {});
  Mutator random(7);
  const int count = rounds();
  for (int i = 0; i < count; ++i) {
    Raw noise{Bytes(random.below(120))};
    for (auto& byte : noise.bytes) byte = random.byte();
    const bool v6 = random.below(2) == 0;
    if (!noise.bytes.empty()) noise.bytes[0] = v6 ? 0x60 : 0x45;
    require_sane_end(
        lb, (Eth{.type = v6 ? std::uint16_t{0x86dd} : std::uint16_t{0x0800}} / noise).bytes());
  }
}

TEST_CASE("mutated packets in bursts, with a full port now and then, keep the counters right") {
  LbUnderTest lb(sample_services(), {});
  Mutator random(8);
  const auto samples = sample_packets();
  for (int i = 0; i < 2000; ++i) {
    lb.io.has_kernel = random.below(3) != 0;
    lb.io.transmit_room.clear();
    if (random.below(2) == 0)
      lb.io.transmit_room[PortNumber{0}] = static_cast<unsigned>(random.below(20));
    for (std::size_t packets = random.below(100); packets > 0; --packets)
      lb.io.push(random.mutate(samples[random.below(samples.size())].bytes()), {});
    lb.drain_queue();
    lb.pass(std::chrono::milliseconds(random.below(2000)));
  }
  CHECK(lb.dropped_for(DropReason::tx_full) > 0);
  CHECK(lb.dropped_for(DropReason::no_kernel_path) > 0);
}

TEST_CASE("every packet of the captures in HOLDFAST_CAPTURES has a sane end") {
  const char* folder = std::getenv("HOLDFAST_CAPTURES");
  if (folder == nullptr) {
    WARN("skipped: HOLDFAST_CAPTURES names no folder of captures");
    return;
  }
  std::size_t files = 0;
  std::size_t forwarded = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".pcap") continue;
    INFO(entry.path().string());
    const auto frames = read_capture(entry.path());
    CHECK_FALSE(frames.empty());
    LbUnderTest ours(services_for(frames), {});
    LbUnderTest not_ours(sample_services(), {});
    Mutator random(9);
    for (const Bytes& frame : frames) {
      require_sane_end(ours, frame);
      require_sane_end(not_ours, frame);
    }
    forwarded += ours.counters().forwarded;
    for (int round = 0; round < 50; ++round)
      for (const Bytes& frame : frames) require_sane_end(ours, random.mutate(frame));
    ++files;
  }
  CHECK(files > 0);
  CHECK(forwarded > 0);
}

// SPDX-License-Identifier: Apache-2.0
// Any sequence of fragments, at two workers that read each other's tables, with time passing: the
// counter identity holds after each (LbUnderTest), no buffer is lost, and in the end nothing is
// held.
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <stdexcept>

#include "tests/dsl/sane_end.h"

namespace {

using namespace holdfast;
using namespace holdfast::dsl;

/// One fragment: four bytes of input. There are few datagrams and places, so that they meet.
struct Step {
  unsigned worker;
  bool v6;
  bool more;
  std::uint8_t number;
  std::uint16_t offset;  // in units of 8 bytes
  std::uint16_t size;    // bytes
  std::chrono::milliseconds pause;

  explicit Step(std::span<const std::uint8_t, 4> bytes)
      : worker(bytes[0] & 1u),
        v6((bytes[0] & 2u) != 0),
        more((bytes[0] & 4u) != 0),
        number(static_cast<std::uint8_t>(bytes[0] >> 3 & 7u)),
        offset(static_cast<std::uint16_t>((bytes[0] >> 6 & 3u) == 3 ? bytes[1] * 32 : bytes[1])),
        size(bytes[2]),
        pause(bytes[3] < 200 ? 0 : (bytes[3] - 200) * 5) {
    if (more && bytes[3] % 16 != 0) size = static_cast<std::uint16_t>(size / 8 * 8);
  }

  [[nodiscard]] Packet packet() const {
    const Packet rest = offset == 0 && size >= 8
                            ? Udp{.sport = number} / payload(size - std::size_t{8})
                            : Packet(payload(size));
    if (v6)
      return Eth{} / Ip6{} /
             Fragment6{.offset = offset, .more = more, .id = number, .next_header = 17} / rest;
    return Eth{} /
           Ip4{.id = number,
               .df = false,
               .more_fragments = more,
               .fragment_offset = offset,
               .protocol = 17} /
           rest;
  }
};

struct Workers {
  std::array<LbUnderTest, 2> lbs{LbUnderTest(services(), options()),
                                 LbUnderTest(services(), options())};

  Workers() {
    const std::array both{&lbs[0].flows, &lbs[1].flows};
    FlowContext::connect(both);
  }
  static std::vector<ServiceSpec> services() {
    return {service({"203.0.113.10", "2001:db8::10"}, udp_any()).to("192.0.2.21").to("192.0.2.22")};
  }
  static LbUnderTest::Options options() { return {.flows = {.capacity = 100, .most_held = 20}}; }

  void run(const Step& step) {
    static_cast<void>(require_sane_end(lbs[step.worker], step.packet().bytes()));
    for (LbUnderTest& lb : lbs) lb.pass(step.pause);
  }
  void end() {
    for (LbUnderTest& lb : lbs) {
      lb.pass(std::chrono::seconds(2));
      for (int polls = 0; polls < 4; ++polls) lb.idle();
      static_cast<void>(lb.take_released());
      if (lb.counters().held_now != 0) throw std::logic_error("a fragment is held for ever");
    }
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Workers workers;
  try {
    for (std::size_t at = 0; at + 4 <= size && at < 400; at += 4)
      workers.run(Step(std::span<const std::uint8_t, 4>(data + at, 4)));
    workers.end();
  } catch (const std::logic_error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    std::abort();
  }
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Any bytes as a packet, through the whole pipeline: a sane end (tests/dsl/sane_end.h), no read
// outside the packet, the counter identity. Besides what libFuzzer keeps, packets of all kinds
// (tests/dsl/samples.h) are what it mutates, so no corpus needs to be kept up to date.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "tests/dsl/samples.h"
#include "tests/dsl/sane_end.h"
#include "tests/fuzz/from_samples.h"

namespace {

using namespace holdfast;
using namespace holdfast::dsl;

/// The first byte of an input is what the NIC says about the packet, the rest is the packet.
MbufShape shape_of(std::uint8_t how, std::size_t size) {
  MbufShape shape;
  if ((how & 1) != 0) shape.ol_flags |= RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
  if ((how & 2) != 0) shape.ol_flags |= RTE_MBUF_F_RX_IP_CKSUM_BAD;
  if ((how & 4) != 0) shape.first_segment = size / 2;
  if ((how & 8) != 0) shape.headroom = 30;
  if ((how & 16) != 0) shape.tailroom = 3712;  // what is split can be gathered
  if ((how & 32) != 0) shape.other_segments = 9;
  return shape;
}

/// Never limits: what is dropped for its rate alone would hide the rest of the path.
LbUnderTest make_lb() { return LbUnderTest(sample_services(), {.icmp_relay_rate = 0xffffffff}); }

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  return mutate_from_samples(data, size, max_size, seed, 1,
                             [](std::size_t) { return std::uint8_t{0}; });
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static LbUnderTest lb = make_lb();
  if (size == 0 || size > 65000) return 0;
  lb.pass(std::chrono::milliseconds(1));
  try {
    const std::span packet(data + 1, size - 1);
    require_sane_end(lb, packet, shape_of(data[0], packet.size()));
  } catch (const std::logic_error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    std::abort();
  }
  return 0;
}

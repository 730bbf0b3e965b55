// SPDX-License-Identifier: Apache-2.0
// Any packet to VIPs that reject unknown ports, through tunnels so narrow that hardly anything
// fits: nearly all of it is answered, fragmented or may be neither. A sane end
// (tests/dsl/sane_end.h): an answer is well-formed, of the right length and quotes what came;
// fragments make up the packet.
//
// The first byte of an input says how wide the tunnels are, the rest is the packet.
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <vector>

#include "tests/dsl/samples.h"
#include "tests/dsl/sane_end.h"
#include "tests/fuzz/from_samples.h"

namespace {

using namespace holdfast;
using namespace holdfast::dsl;

constexpr std::array<std::uint16_t, 8> kMtus{0, 48, 60, 100, 300, 576, 1300, 1340};

/// One for each width.
std::vector<std::unique_ptr<LbUnderTest>> make_lbs() {
  std::vector<std::unique_ptr<LbUnderTest>> lbs;
  for (const std::uint16_t mtu : kMtus) {
    auto services = sample_services();
    for (ServiceSpec& service : services) {
      service = service.rejecting();
      for (BackendSpec& backend : service.backends)
        for (Hop& hop : backend.hops) hop.mtu = mtu;
    }
    lbs.push_back(std::make_unique<LbUnderTest>(
        services,
        LbUnderTest::Options{.icmp_relay_rate = 0xffffffff, .icmp_answer_rate = 0xffffffff}));
  }
  return lbs;
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  return mutate_from_samples(data, size, max_size, seed, 1, [seed](std::size_t) {
    return static_cast<std::uint8_t>(seed / 1024);
  });
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto lbs = make_lbs();
  if (size == 0 || size > 10000) return 0;
  LbUnderTest& lb = *lbs[data[0] % lbs.size()];
  lb.pass(std::chrono::milliseconds(1));
  try {
    require_sane_end(lb, std::span(data + 1, size - 1));
  } catch (const std::logic_error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    std::abort();
  }
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// The mutator of fuzz targets whose inputs are some bytes of choices and then a packet: besides
// what libFuzzer keeps, packets of all kinds (tests/dsl/samples.h) are what it mutates, so no
// corpus needs to be kept up to date. Included once in a target.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/dsl/samples.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace holdfast::dsl {

/// Mutates an input of `choices` bytes before its packet; at times begins with a sample instead,
/// behind what `choose(i)` gives for the i-th of those bytes.
template <class Choose>
std::size_t mutate_from_samples(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                unsigned seed, std::size_t choices, Choose choose) {
  static const auto samples = [] {
    std::vector<Bytes> bytes;
    for (const Packet& packet : sample_packets()) bytes.push_back(packet.bytes());
    return bytes;
  }();
  if (size < choices + 1 || seed % 32 == 0) {
    const Bytes& sample = samples[seed / 32 % samples.size()];
    if (sample.size() + choices <= max_size) {
      for (std::size_t i = 0; i < choices; ++i) data[i] = choose(i);
      std::ranges::copy(sample, data + choices);
      size = sample.size() + choices;
    }
  }
  return LLVMFuzzerMutate(data, size, max_size);
}

}  // namespace holdfast::dsl

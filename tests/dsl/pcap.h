// SPDX-License-Identifier: Apache-2.0
// A small reader of classic pcap files (both byte orders, micro- and nanoseconds), enough to send
// captures through the pipeline. Captures of other link layers get an Ethernet header in place of
// theirs.
#pragma once

#include <span>
#include <vector>

#include "tests/dsl/layers.h"

namespace holdfast::dsl {

/// The frames of a file, as far as they were captured. Throws std::runtime_error when it is no pcap
/// file, ends inside a record, or has a link type that is not known here.
[[nodiscard]] std::vector<Bytes> read_pcap(std::span<const std::uint8_t> file);

}  // namespace holdfast::dsl

// SPDX-License-Identifier: Apache-2.0
// The two buckets of a flow table in which a flow may lie. A value; it belongs to one table.
#pragma once

#include <cstdint>

namespace holdfast {

struct FlowBuckets {
  std::uint32_t first = 0;  // index of a bucket
  std::uint32_t second = 0;
};

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// Which part of a datagram a packet carries. Value.
#pragma once

#include <cstdint>

namespace holdfast {

enum class FragmentPart : std::uint8_t { whole, first, later };

}  // namespace holdfast

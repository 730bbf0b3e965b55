// SPDX-License-Identifier: Apache-2.0
// The property that holds for any bytes: a packet is forwarded with its IP packet unchanged inside
// the tunnel, whole or in fragments, or answered by a good packet from the VIP, or given to the
// kernel unchanged, or dropped for exactly one counted reason.
#pragma once

#include <span>

#include "tests/dsl/lb_under_test.h"

namespace holdfast::dsl {

/// Handles the frame and returns what became of it; throws std::logic_error when that is not sane,
/// or what became of fragments that it released (the counter identity and the whereabouts of
/// buffers are LbUnderTest's own to require).
Handled require_sane_end(LbUnderTest& lb, std::span<const std::uint8_t> frame,
                         const MbufShape& shape = {});

}  // namespace holdfast::dsl

// SPDX-License-Identifier: Apache-2.0
// The MSS option of a SYN (RFC 9293 section 3.7.1): the longest segment that its sender wants to
// get. Lowered on the way to a backend, it limits what the backend sends to the client. Over bytes;
// pure; any thread.
#pragma once

#include <cstdint>
#include <span>

namespace holdfast {

/// Lowers the MSS option to `most`, and mends the checksum by what changed (RFC 1624): that is
/// right for a first fragment too, whose checksum is of more bytes than are here. `tcp`: from the
/// TCP header on, as much as there is; more than the header does no harm. Options that do not add
/// up (lengths of 0 or 1, beyond the header, an MSS of another length than 4, or two of them) leave
/// the whole packet as it is, as does a header that is not all there. False: nothing was changed.
bool clamp_mss(std::span<std::uint8_t> tcp, std::uint16_t most) noexcept;

}  // namespace holdfast

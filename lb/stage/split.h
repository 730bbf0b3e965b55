// SPDX-License-Identifier: Apache-2.0
// One IPv4 packet that does not fit its tunnel becomes several (RFC 791 3.2), which the backend
// puts together again. Part of encapsulate; called by the worker.
#pragma once

#include <cstddef>

#include "lb/burst.h"

namespace holdfast {

class PacketIo;

/// Fragments of at most `room` bytes: the first one stays in the lane's own buffer, its header
/// rewritten, with more bytes behind it than it says; the others are the newest of burst.extra,
/// each beginning with its IP header. Decided: it could not be done, and nothing has changed.
[[nodiscard]] Verdict split_packet(Burst& burst, Burst::Lane lane, std::size_t room, PacketIo& io);

/// Gives back all of burst.extra from index `from` on.
void drop_extra(Burst& burst, unsigned from, PacketIo& io);

}  // namespace holdfast

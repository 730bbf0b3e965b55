// SPDX-License-Identifier: Apache-2.0
// The stages in the order in which they run (Worker::poll_once): the pipeline's contents page. Each
// names in its signature all the state that it can touch. None allocates, logs, throws or makes a
// system call.
#pragma once

#include <span>

#include "lb/burst.h"
#include "lb/fragment/datagram.h"
#include "lib/base/instant.h"
#include "lib/base/token_bucket.h"
#include "lib/model/snapshot.h"

namespace holdfast {

struct FlowContext;     // lb/flow/flow_context.h: the worker's flow table and what goes with it
class AnswerRates;      // lb/answer_rates.h
class FlowTable;        // lb/flow/flow_table.h
class Fragments;        // lb/fragment/fragments.h: what the worker knows about fragments
struct WorkerCounters;  // lb/worker_counters.h
class PacketIo;

/// Bytes -> ParsedPacket, or a verdict. What is not for a VIP goes to the kernel. Packets in
/// several buffers are put in order for the stages behind (lb/segments.h).
void parse(Burst& burst, const Snapshot& now, PacketIo& io) noexcept;

/// Later fragments get the flow that their datagram's first one told, or are held until it comes:
/// then the mbuf belongs to `fragments`.
void join_fragments(Burst& burst, const Snapshot& now, Fragments& fragments, Instant time) noexcept;

/// The same for a burst of held ones that `fragments` gave back: `fates`, by lane, says what is to
/// become of them.
void join_released(Burst& burst, std::span<const FragmentFate> fates) noexcept;

/// (VIP, protocol, port) -> service; the flow's hash and its buckets in the worker's table, which
/// are fetched into the cache from here on. ICMP errors take a token each.
void classify(Burst& burst, const Snapshot& now, const FlowTable& table, TokenBucket& icmp_relay,
              Instant time) noexcept;

/// Flow table, else Maglev.
void pick_backend(Burst& burst, const Snapshot& now, FlowContext& flows, Instant time) noexcept;

/// Outer header, MACs, egress port. What does not fit the tunnel is fragmented, in buffers of `io`,
/// or answered.
void encapsulate(Burst& burst, const Snapshot& now, PacketIo& io) noexcept;

/// What the VIP says itself: written over the packet that asks for it, egress port.
void answer(Burst& burst, const Snapshot& now, AnswerRates& rates, PacketIo& io,
            Instant time) noexcept;

/// Transmits, hands to the kernel or frees; counts each packet under exactly one outcome.
void finish(Burst& burst, PacketIo& io, WorkerCounters& counters, FlowContext& flows) noexcept;

}  // namespace holdfast

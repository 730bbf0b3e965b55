// SPDX-License-Identifier: Apache-2.0
// What the data plane counts, as values that ctrl reads. 64-bit, never reset. Workers own their
// counters (single writer); a reading is a relaxed copy and may be a few packets apart between
// fields while traffic flows.
#pragma once

#include <array>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "lib/model/drop_reason.h"
#include "lib/model/numbers.h"

namespace holdfast {

/// One counter of a struct of them, by the name that operators see.
template <class Counters>
struct NamedCounter {
  std::string_view name;
  std::uint64_t Counters::*value;
};

/// The counter identity, per worker:
///   received == forwarded + answered + to_kernel + sum(dropped) + held_now
///   transmitted == forwarded + extra_fragments + answered + injected + from_kernel
struct PacketCounters {
  std::uint64_t received = 0;
  std::uint64_t forwarded = 0;
  std::uint64_t answered = 0;
  std::uint64_t to_kernel = 0;
  std::array<std::uint64_t, kDropReasonCount> dropped{};
  std::uint64_t held_now = 0;
  std::uint64_t transmitted = 0;
  std::uint64_t extra_fragments = 0;
  std::uint64_t injected = 0;
  std::uint64_t from_kernel = 0;
  std::uint64_t received_bytes = 0;   // frames as received
  std::uint64_t forwarded_bytes = 0;  // frames as transmitted

  [[nodiscard]] std::uint64_t dropped_sum() const {
    std::uint64_t sum = 0;
    for (const auto count : dropped) sum += count;
    return sum;
  }
  PacketCounters& operator+=(const PacketCounters& other);
};

/// All of them but `dropped`, for adding up and showing.
inline constexpr NamedCounter<PacketCounters> kPacketCounters[] = {
    {"received", &PacketCounters::received},
    {"forwarded", &PacketCounters::forwarded},
    {"answered", &PacketCounters::answered},
    {"to_kernel", &PacketCounters::to_kernel},
    {"held_now", &PacketCounters::held_now},
    {"transmitted", &PacketCounters::transmitted},
    {"extra_fragments", &PacketCounters::extra_fragments},
    {"injected", &PacketCounters::injected},
    {"from_kernel", &PacketCounters::from_kernel},
    {"received_bytes", &PacketCounters::received_bytes},
    {"forwarded_bytes", &PacketCounters::forwarded_bytes},
};
static_assert(sizeof(PacketCounters) ==
                  (std::size(kPacketCounters) + kDropReasonCount) * sizeof(std::uint64_t),
              "a counter is missing in kPacketCounters");

/// Flow-table events and contents of one worker. Every entry that was inserted is still there or
/// left in one way:
///   inserted == embryonic + established + closing
///               + expired + evicted_embryonic + evicted_stale + gone + handed_over
struct FlowTableCounters {
  std::uint64_t capacity = 0;  // entries
  std::uint64_t embryonic = 0;
  std::uint64_t established = 0;  // proven ones included
  std::uint64_t closing = 0;
  std::uint64_t inserted = 0;  // new entries, copies from other workers' tables included
  std::uint64_t expired = 0;
  std::uint64_t evicted_embryonic = 0;
  std::uint64_t evicted_stale = 0;
  std::uint64_t gone = 0;          // dropped since the backend or the service is gone
  std::uint64_t handed_over = 0;   // dropped since another worker has copied it
  std::uint64_t not_recorded = 0;  // forwarded by Maglev without an entry
  std::uint64_t relocations = 0;
  std::uint64_t hits = 0;
  std::uint64_t sibling_hits = 0;     // found in another worker's table
  std::uint64_t sibling_refused = 0;  // not looked for there: sibling_lookup_rate was used up
  std::uint64_t new_flows = 0;        // SYN or first UDP packet
  std::uint64_t mid_flow_misses = 0;
  std::uint64_t repicked = 0;  // placed anew since the backend no longer keeps the flow
  std::uint64_t sweeps = 0;    // completed passes over the whole table

  FlowTableCounters& operator+=(const FlowTableCounters& other);
};

/// All of them, for adding up and showing.
inline constexpr NamedCounter<FlowTableCounters> kFlowTableCounters[] = {
    {"capacity", &FlowTableCounters::capacity},
    {"embryonic", &FlowTableCounters::embryonic},
    {"established", &FlowTableCounters::established},
    {"closing", &FlowTableCounters::closing},
    {"inserted", &FlowTableCounters::inserted},
    {"expired", &FlowTableCounters::expired},
    {"evicted_embryonic", &FlowTableCounters::evicted_embryonic},
    {"evicted_stale", &FlowTableCounters::evicted_stale},
    {"gone", &FlowTableCounters::gone},
    {"handed_over", &FlowTableCounters::handed_over},
    {"not_recorded", &FlowTableCounters::not_recorded},
    {"relocations", &FlowTableCounters::relocations},
    {"hits", &FlowTableCounters::hits},
    {"sibling_hits", &FlowTableCounters::sibling_hits},
    {"sibling_refused", &FlowTableCounters::sibling_refused},
    {"new_flows", &FlowTableCounters::new_flows},
    {"mid_flow_misses", &FlowTableCounters::mid_flow_misses},
    {"repicked", &FlowTableCounters::repicked},
    {"sweeps", &FlowTableCounters::sweeps},
};
static_assert(sizeof(FlowTableCounters) == std::size(kFlowTableCounters) * sizeof(std::uint64_t),
              "a counter is missing in kFlowTableCounters");

/// Per backend membership, and per service: summed over workers by the reader.
struct FlowCounters {
  std::uint64_t packets = 0;    // forwarded
  std::uint64_t bytes = 0;      // inner IP bytes forwarded
  std::uint64_t new_flows = 0;  // entries (or unrecorded flows) that a pick placed here
  std::int64_t active = 0;      // established or proven entries now
  std::int64_t embryonic = 0;
  std::int64_t closing = 0;

  FlowCounters& operator+=(const FlowCounters& other);
};

struct WorkerStats {
  unsigned worker = 0;
  int cpu = -1;
  PacketCounters packets{};
  FlowTableCounters flows{};
  std::uint64_t polls = 0;
  std::uint64_t sleeps = 0;
  std::uint64_t heartbeat = 0;            // moves at least ten times a second in a live worker
  std::uint64_t snapshot_generation = 0;  // that it worked with last; 0: it has not begun
};

/// One port as the device reports it.
struct PortStats {
  std::string name;
  bool up = false;  // the link, as the kernel or the device says
  std::uint64_t received = 0;
  std::uint64_t transmitted = 0;
  std::uint64_t missed = 0;
  std::uint64_t receive_errors = 0;
  std::uint64_t transmit_errors = 0;
  std::uint64_t no_buffers = 0;
};

/// What the steering program did (AF_XDP ports): one row a port.
struct SteeringStats {
  std::string port;
  std::uint64_t to_workers = 0;
  std::uint64_t to_kernel = 0;
  /// For a VIP, on a queue without a worker: dropped there. With those of the program that a killed
  /// run left behind.
  std::uint64_t no_socket = 0;
};

struct DataPlaneStats {
  std::vector<WorkerStats> workers{};
  std::vector<PortStats> ports{};
  std::vector<SteeringStats> steering{};
  std::vector<FlowCounters> backends{};  // by BackendNumber, summed over workers
  std::vector<FlowCounters> services{};  // by ServiceNumber, summed over workers
};

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
#include <rte_mbuf.h>

#include <cassert>
#include <cstdlib>

#include "lb/flow/flow_context.h"
#include "lb/packet_io.h"
#include "lb/stage/stages.h"
#include "lb/worker_counters.h"

namespace holdfast {

namespace {

/// Packets of one burst that share a fate, in order of arrival.
struct Batch {
  unsigned size = 0;
  std::array<rte_mbuf*, Burst::kCapacity> mbuf;
  std::array<Burst::Lane, Burst::kCapacity> lane;
  std::array<std::uint32_t, Burst::kCapacity> bytes;  // the port may change an mbuf that it took

  void add(const Burst& burst, Burst::Lane from) {
    mbuf[size] = burst.mbuf[from];
    lane[size] = from;
    bytes[size] = burst.mbuf[from]->pkt_len;
    ++size;
  }
};

struct Finish {
  Burst& burst;
  PacketIo& io;
  WorkerCounters& counters;
  FlowContext& flows;
  Batch& to_free;

  void drop(Burst::Lane lane, DropReason reason) {
    counters.drop(reason);
    to_free.add(burst, lane);
  }

  void count_transmitted(Burst::Lane lane, std::uint32_t bytes) {
    counters.transmitted.add();
    if (burst.verdict[lane].outcome == Outcome::answer) {
      counters.answered.add();
      return;
    }
    counters.forwarded.add();
    counters.forwarded_bytes.add(bytes);
    flows.count_forwarded(burst.service[lane], burst.backend[lane], burst.packet[lane].ip_length);
  }

  void transmit(PortNumber port, Batch& batch) {
    const unsigned taken = io.transmit(port, {batch.mbuf.data(), batch.size});
    for (unsigned i = 0; i < taken; ++i) count_transmitted(batch.lane[i], batch.bytes[i]);
    for (unsigned i = taken; i < batch.size; ++i) drop(batch.lane[i], DropReason::tx_full);
  }

  /// One call per port; the order on each is the order of arrival. Nearly always there is one port.
  void transmit_all(const Batch& leaving) {
    std::array<bool, Burst::kCapacity> sent{};
    for (unsigned first = 0; first < leaving.size; ++first) {
      if (sent[first]) continue;
      const PortNumber port = burst.egress[leaving.lane[first]];
      Batch batch;
      for (unsigned i = first; i < leaving.size; ++i) {
        if (sent[i] || burst.egress[leaving.lane[i]] != port) continue;
        sent[i] = true;
        batch.add(burst, leaving.lane[i]);
      }
      transmit(port, batch);
    }
  }

  void give_to_kernel(Burst::Lane lane) {
    if (io.to_kernel(burst.mbuf[lane]))
      counters.to_kernel.add();
    else
      drop(lane, DropReason::no_kernel_path);
  }
};

}  // namespace

void finish(Burst& burst, PacketIo& io, WorkerCounters& counters, FlowContext& flows) noexcept {
  Batch to_free;
  Batch leaving;
  Finish work{.burst = burst, .io = io, .counters = counters, .flows = flows, .to_free = to_free};
  for (Burst::Lane lane = 0; lane < burst.size; ++lane) {
    switch (burst.verdict[lane].outcome) {
      case Outcome::forward:
      case Outcome::answer:
        leaving.add(burst, lane);
        break;
      case Outcome::to_kernel:
        work.give_to_kernel(lane);
        break;
      case Outcome::drop:
        work.drop(lane, burst.verdict[lane].reason);
        break;
      case Outcome::undecided:
        // No packet can bring this about: encapsulate() leaves nothing open.
        assert(false);
        std::abort();
    }
  }
  work.transmit_all(leaving);
  if (to_free.size != 0) io.free({to_free.mbuf.data(), to_free.size});
}

}  // namespace holdfast

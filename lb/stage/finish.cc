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
  static constexpr unsigned kMost = Burst::kCapacity + Burst::kMaxExtra;

  unsigned size = 0;
  std::array<rte_mbuf*, kMost> mbuf;
  std::array<Burst::Lane, kMost> lane;
  std::array<std::uint32_t, kMost> bytes;  // the port may change an mbuf that it took
  std::array<bool, kMost> extra;           // not the lane's own buffer

  void add(rte_mbuf* packet, Burst::Lane of, bool is_extra) {
    mbuf[size] = packet;
    lane[size] = of;
    bytes[size] = packet->pkt_len;
    extra[size] = is_extra;
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
    counters.drop_samples.take(reason, *burst.mbuf[lane], flows.clock);
    to_free.add(burst.mbuf[lane], lane, false);
  }

  void count_transmitted(Burst::Lane lane, std::uint32_t bytes, bool extra) {
    counters.transmitted.add();
    if (extra) {
      counters.extra_fragments.add();
      counters.forwarded_bytes.add(bytes);
      return;
    }
    if (burst.verdict[lane].outcome == Outcome::answer) {
      counters.answered.add();
      return;
    }
    counters.forwarded.add();
    counters.forwarded_bytes.add(bytes);
    flows.count_forwarded(burst.service[lane], burst.backend[lane], burst.packet[lane].ip_length);
  }

  /// A packet of which the port takes some fragments but not all is lost to its receiver: it is
  /// dropped, and what left of it counts as extra.
  void transmit(PortNumber port, Batch& batch) {
    const unsigned taken = io.transmit(port, {batch.mbuf.data(), batch.size});
    const bool splits = taken < batch.size && batch.extra[taken];
    for (unsigned i = 0; i < taken; ++i)
      count_transmitted(batch.lane[i], batch.bytes[i],
                        batch.extra[i] || (splits && batch.lane[i] == batch.lane[taken]));
    if (splits) counters.drop(DropReason::tx_full);
    for (unsigned i = taken; i < batch.size; ++i) {
      if (batch.extra[i])
        to_free.add(batch.mbuf[i], batch.lane[i], true);
      else
        drop(batch.lane[i], DropReason::tx_full);
    }
  }

  /// One call per port; the order on each is the order of arrival. Nearly always there is one port.
  void transmit_all(const Batch& leaving) {
    std::array<bool, Batch::kMost> sent{};
    for (unsigned first = 0; first < leaving.size; ++first) {
      if (sent[first]) continue;
      const PortNumber port = burst.egress[leaving.lane[first]];
      Batch batch;
      for (unsigned i = first; i < leaving.size; ++i) {
        if (sent[i] || burst.egress[leaving.lane[i]] != port) continue;
        sent[i] = true;
        batch.add(leaving.mbuf[i], leaving.lane[i], leaving.extra[i]);
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
  unsigned next_extra = 0;
  for (Burst::Lane lane = 0; lane < burst.size; ++lane) {
    switch (burst.verdict[lane].outcome) {
      case Outcome::forward:
      case Outcome::answer: {
        const bool fits = burst.mbuf[lane]->nb_segs == 1 || io.takes_chains(burst.egress[lane]);
        if (fits)
          leaving.add(burst.mbuf[lane], lane, false);
        else
          work.drop(lane, DropReason::multi_segment);
        for (; next_extra < burst.extra_size && burst.extra[next_extra].lane == lane; ++next_extra)
          (fits ? leaving : to_free).add(burst.extra[next_extra].mbuf, lane, true);
        break;
      }
      case Outcome::to_kernel:
        work.give_to_kernel(lane);
        break;
      case Outcome::hold:
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

// SPDX-License-Identifier: Apache-2.0
#include "lb/worker.h"

#include "lb/burst_witness.h"
#include "lb/flow/flow_context.h"
#include "lb/packet_io.h"
#include "lb/stage/stages.h"
#include "lb/worker_counters.h"

namespace holdfast {

unsigned Worker::poll_once(const Snapshot& now, Instant time) noexcept {
  receive();
  flows_.tend(now, time, burst_.size == 0 ? kSweepIdle : kSweepBusy);
  const unsigned received = burst_.size;
  if (received != 0) {
    parse(burst_, now, io_);
    if (burst_.has_fragments) join_fragments(burst_, now, flows_.fragments, time);
    run(now, time);
  }
  if (flows_.fragments.busy()) tend_fragments(now, time);
  return received;
}

void Worker::tend_fragments(const Snapshot& now, Instant time) noexcept {
  Fragments& fragments = flows_.fragments;
  fragments.tend(time);
  for (unsigned bursts = 0; bursts < kReleasedBursts && fragments.has_released(); ++bursts) {
    std::array<FragmentFate, Burst::kCapacity> fates;
    burst_.size = 0;
    while (burst_.size < Burst::kCapacity) {
      const auto released = fragments.take_released();
      if (!released) break;
      burst_.mbuf[burst_.size] = released->packet;
      fates[burst_.size++] = released->fate;
    }
    parse(burst_, now, io_);
    join_released(burst_, fates);
    run(now, time);
  }
  counters_.held_now.set(fragments.held());
}

void Worker::run(const Snapshot& now, Instant time) noexcept {
  burst_.extra_size = 0;
  burst_.answer_count = 0;
  if (witness_ != nullptr) {
    // Packets that are decided before these are known must not show an earlier packet's.
    burst_.service.fill(kNoService);
    burst_.backend.fill(kNoBackend);
  }
  classify(burst_, now, flows_.table, icmp_relay_, time);
  pick_backend(burst_, now, flows_, time);
  encapsulate(burst_, now, io_);
  answer(burst_, now, answer_rates_, io_, time);
  if (witness_ != nullptr) witness_->see(burst_);
  finish(burst_, io_, counters_, flows_);
}

void Worker::receive() noexcept {
  burst_.size = io_.receive(burst_.mbuf);
  std::uint64_t bytes = 0;
  for (Burst::Lane lane = 0; lane < burst_.size; ++lane) bytes += burst_.mbuf[lane]->pkt_len;
  counters_.received.add(burst_.size);
  counters_.received_bytes.add(bytes);
}

}  // namespace holdfast

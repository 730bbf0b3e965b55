// SPDX-License-Identifier: Apache-2.0
#include "lb/heap/heap_io.h"

#include <stdexcept>

namespace holdfast {

HeapIo::~HeapIo() {
  for (const Waiting& waiting : waiting_) free_mbuf(waiting.mbuf);
  for (const auto& [mbuf, arrival] : arrivals_) free_mbuf(mbuf);
}

void HeapIo::push(std::span<const std::uint8_t> frame, const MbufShape& shape,
                  std::size_t arrival) {
  waiting_.push_back({make_mbuf(frame, shape), arrival});
}

unsigned HeapIo::receive(std::span<rte_mbuf*> into) {
  unsigned count = 0;
  for (; count < into.size() && !waiting_.empty(); ++count) {
    into[count] = waiting_.front().mbuf;
    arrivals_[waiting_.front().mbuf] = waiting_.front().arrival;
    for (const rte_mbuf* at = into[count]->next; at != nullptr; at = at->next) parts_.insert(at);
    waiting_.pop_front();
  }
  return count;
}

unsigned HeapIo::transmit(PortNumber port, std::span<rte_mbuf*> packets) {
  for (rte_mbuf* packet : packets) give_back(packet, Fate::Kind::sent, port);
  return static_cast<unsigned>(packets.size());
}

bool HeapIo::to_kernel(rte_mbuf* packet) {
  give_back(packet, Fate::Kind::to_kernel, kNoPort);
  return true;
}

void HeapIo::free(std::span<rte_mbuf*> packets) {
  for (rte_mbuf* packet : packets)
    if (parts_.contains(packet))
      free_parts(packet);
    else
      give_back(packet, Fate::Kind::freed, kNoPort);
}

/// Buffers that were cut off from a packet, and are no part of it any more.
void HeapIo::free_parts(rte_mbuf* first) {
  for (const rte_mbuf* at = first; at != nullptr; at = at->next)
    if (parts_.erase(at) == 0) throw std::logic_error("a buffer was cut off twice");
  free_mbuf(first);
}

rte_mbuf* HeapIo::allocate() {
  // As large as the daemon's.
  rte_mbuf* const mbuf = make_segment({}, {.tailroom = 3840 - RTE_PKTMBUF_HEADROOM});
  arrivals_[mbuf] = kMade;
  return mbuf;
}

void HeapIo::give_back(rte_mbuf* packet, Fate::Kind kind, PortNumber port) {
  const auto arrival = arrivals_.find(packet);
  if (arrival == arrivals_.end())
    throw std::logic_error("the worker gave a packet back twice, or one that it never received");
  Fate fate{.kind = kind, .arrival = arrival->second, .port = port};
  if (kind != Fate::Kind::freed) fate.frame = bytes_of(*packet);
  if (kind == Fate::Kind::sent) on_sent(*packet, fate.frame);
  fates_.push_back(std::move(fate));
  arrivals_.erase(arrival);
  for (const rte_mbuf* at = packet->next; at != nullptr; at = at->next)
    if (parts_.erase(at) == 0) throw std::logic_error("a buffer is part of no packet, or of two");
  free_mbuf(packet);
}

}  // namespace holdfast

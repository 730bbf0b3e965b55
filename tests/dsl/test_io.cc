// SPDX-License-Identifier: Apache-2.0
#include "tests/dsl/test_io.h"

#include <algorithm>
#include <stdexcept>

namespace holdfast::dsl {

TestIo::~TestIo() {
  for (const Waiting& waiting : waiting_) free_mbuf(waiting.mbuf);
  for (const auto& [mbuf, arrival] : arrivals_) free_mbuf(mbuf);
}

std::size_t TestIo::push(std::span<const std::uint8_t> frame, const MbufShape& shape) {
  waiting_.push_back({make_mbuf(frame, shape), pushed_});
  return pushed_++;
}

unsigned TestIo::receive(std::span<rte_mbuf*> into) {
  unsigned count = 0;
  for (; count < into.size() && !waiting_.empty(); ++count) {
    into[count] = waiting_.front().mbuf;
    arrivals_[waiting_.front().mbuf] = waiting_.front().arrival;
    waiting_.pop_front();
  }
  return count;
}

unsigned TestIo::transmit(PortNumber port, std::span<rte_mbuf*> packets) {
  auto taken = static_cast<unsigned>(packets.size());
  if (const auto room = transmit_room.find(port); room != transmit_room.end()) {
    taken = std::min(taken, room->second);
    room->second -= taken;
  }
  for (rte_mbuf* packet : packets.first(taken)) give_back(packet, Fate::Kind::sent, port);
  return taken;
}

bool TestIo::to_kernel(rte_mbuf* packet) {
  if (has_kernel) give_back(packet, Fate::Kind::to_kernel, kNoPort);
  return has_kernel;
}

void TestIo::free(std::span<rte_mbuf*> packets) {
  for (rte_mbuf* packet : packets) give_back(packet, Fate::Kind::freed, kNoPort);
}

rte_mbuf* TestIo::allocate() {
  if (buffers == 0) return nullptr;
  --buffers;
  // As large as the daemon's.
  rte_mbuf* const mbuf = make_segment({}, {.tailroom = 3840 - RTE_PKTMBUF_HEADROOM});
  arrivals_[mbuf] = kMade;
  return mbuf;
}

void TestIo::give_back(rte_mbuf* packet, Fate::Kind kind, PortNumber port) {
  const auto arrival = arrivals_.find(packet);
  if (arrival == arrivals_.end())
    throw std::logic_error("the worker gave a packet back twice, or one that it never received");
  Fate fate{.kind = kind, .arrival = arrival->second, .port = port};
  if (kind != Fate::Kind::freed) fate.frame = bytes_of(*packet);
  fates_.push_back(std::move(fate));
  arrivals_.erase(arrival);
  free_mbuf(packet);
}

}  // namespace holdfast::dsl

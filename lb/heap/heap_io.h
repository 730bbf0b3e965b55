// SPDX-License-Identifier: Apache-2.0
// A worker's PacketIo without devices: packets come from a list and go to lists. For tests and
// replay. It owns every mbuf that the worker does not hold; one owner, the thread that runs the
// worker.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "lb/heap/heap_mbuf.h"
#include "lb/packet_io.h"

namespace holdfast {

class HeapIo : public PacketIo {
 public:
  /// What became of a packet that was given back.
  struct Fate {
    enum class Kind : std::uint8_t { sent, to_kernel, freed };
    Kind kind;
    std::size_t arrival;  // what push() was told; kMade: the worker made it itself
    PortNumber port = kNoPort;
    std::vector<std::uint8_t> frame{};  // as it left; of a freed one nothing
  };
  static constexpr std::size_t kMade = SIZE_MAX;

  HeapIo() = default;
  HeapIo(const HeapIo&) = delete;
  HeapIo& operator=(const HeapIo&) = delete;
  ~HeapIo() override;

  /// `arrival` is how the caller knows the packet.
  void push(std::span<const std::uint8_t> frame, const MbufShape& shape, std::size_t arrival);
  /// All that left since the last call, in the order in which it left.
  [[nodiscard]] std::vector<Fate> take_fates() { return std::exchange(fates_, {}); }
  /// Packets that were pushed and not received yet.
  [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }
  /// Packets that the worker holds: received or allocated, and not given back.
  [[nodiscard]] std::size_t held() const { return arrivals_.size(); }

  /// Requires: the worker holds it.
  [[nodiscard]] std::size_t arrival_of(rte_mbuf* packet) const { return arrivals_.at(packet); }
  /// From now on a packet that the worker made counts as this one.
  void set_arrival(rte_mbuf* packet, std::size_t arrival) { arrivals_.at(packet) = arrival; }

  [[nodiscard]] unsigned receive(std::span<rte_mbuf*> into) override;
  [[nodiscard]] unsigned transmit(PortNumber port, std::span<rte_mbuf*> packets) override;
  [[nodiscard]] bool to_kernel(rte_mbuf* packet) override;
  void free(std::span<rte_mbuf*> packets) override;
  [[nodiscard]] PortNumber came_from(const rte_mbuf& packet) const override {
    return static_cast<PortNumber>(packet.port);
  }
  [[nodiscard]] rte_mbuf* allocate() override;

 protected:
  /// What a port does to a frame that it sends, such as a checksum that it was asked for.
  virtual void on_sent(const rte_mbuf& /*packet*/, std::vector<std::uint8_t>& /*frame*/) {}

 private:
  void free_parts(rte_mbuf* first);
  void give_back(rte_mbuf* packet, Fate::Kind kind, PortNumber port);

  struct Waiting {
    rte_mbuf* mbuf;
    std::size_t arrival;
  };
  std::deque<Waiting> waiting_{};
  std::map<rte_mbuf*, std::size_t> arrivals_{};
  std::set<const rte_mbuf*> parts_{};  // buffers behind the first ones of what the worker holds
  std::vector<Fate> fates_{};
};

}  // namespace holdfast

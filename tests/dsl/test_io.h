// SPDX-License-Identifier: Apache-2.0
// The tests' PacketIo: packets come from a list and go to lists. It owns every mbuf that the worker
// does not hold.
#pragma once

#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "lb/packet_io.h"
#include "tests/dsl/layers.h"
#include "tests/dsl/mbuf.h"

namespace holdfast::dsl {

class TestIo : public PacketIo {
 public:
  /// What became of a packet that was given back.
  struct Fate {
    enum class Kind : std::uint8_t { sent, to_kernel, freed };
    Kind kind;
    std::size_t arrival;  // the number that push() returned; kMade: the worker made it itself
    PortNumber port = kNoPort;
    Bytes frame{};  // as it left; of a freed one nothing
  };

  static constexpr std::size_t kMade = SIZE_MAX;

  TestIo() = default;
  TestIo(const TestIo&) = delete;
  TestIo& operator=(const TestIo&) = delete;
  ~TestIo() override;

  std::size_t push(std::span<const std::uint8_t> frame, const MbufShape& shape);
  /// All that left since the last call, in the order in which it left.
  [[nodiscard]] std::vector<Fate> take_fates() { return std::exchange(fates_, {}); }
  /// Packets that the worker holds: received or allocated, and not given back.
  [[nodiscard]] std::size_t held() const { return arrivals_.size(); }

  [[nodiscard]] std::size_t arrival_of(rte_mbuf* packet) const { return arrivals_.at(packet); }

  bool has_kernel = true;
  unsigned checksums_filled = 0;  // by the port, as packets asked for (RTE_MBUF_F_TX_UDP_CKSUM)
  std::map<PortNumber, unsigned> transmit_room{};  // absent: endless; else so many more are taken
  unsigned buffers = 1'000'000;                    // so many more can be allocated

  unsigned receive(std::span<rte_mbuf*> into) override;
  unsigned transmit(PortNumber port, std::span<rte_mbuf*> packets) override;
  bool to_kernel(rte_mbuf* packet) override;
  void free(std::span<rte_mbuf*> packets) override;
  [[nodiscard]] PortNumber came_from(const rte_mbuf& packet) const override {
    return static_cast<PortNumber>(packet.port);
  }
  [[nodiscard]] rte_mbuf* allocate() override;

 private:
  void give_back(rte_mbuf* packet, Fate::Kind kind, PortNumber port);

  struct Waiting {
    rte_mbuf* mbuf;
    std::size_t arrival;
  };
  std::deque<Waiting> waiting_{};
  std::map<rte_mbuf*, std::size_t> arrivals_{};
  std::vector<Fate> fates_{};
  std::size_t pushed_ = 0;
};

}  // namespace holdfast::dsl

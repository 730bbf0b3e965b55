// SPDX-License-Identifier: Apache-2.0
// What pipeline benchmarks stand on: a snapshot with one VIP of each family, frames that are
// written on the fly into a few thousand buffers (one buffer a flow would measure the buffers), and
// a PacketIo over them. One thread.
#pragma once

#include <rte_mbuf.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "lb/packet_io.h"
#include "lib/model/snapshot.h"

namespace holdfast::bench {

inline constexpr ServiceNumber kTcpService{0};  // TCP 80 on both VIPs
inline constexpr ServiceNumber kUdpService{1};  // UDP 443 on both VIPs

struct Fleet {
  std::uint16_t backends = 100;
  std::uint32_t table_size = 65537;
  Family tunnel = Family::ipv4;  // the backends' addresses
  Encapsulation encapsulation = Encapsulation::ipip;
};

/// Services as above over one pool; every backend eligible and reached by one next hop.
[[nodiscard]] std::unique_ptr<Snapshot> make_snapshot(const Fleet& fleet = {});

/// Numbers 0..count-1 in a stride that visits each once and that no prefetcher follows: by the
/// golden ratio, so that no few steps lead back to a neighbour, as they would with a simple
/// fraction.
class Stride {
 public:
  explicit Stride(std::uint64_t count) : count_(count), step_(count * 618 / 1000 + 1) {
    while (std::gcd(step_, count_) != 1) ++step_;
  }
  [[nodiscard]] std::uint64_t next() {
    at_ += step_;
    at_ -= at_ >= count_ ? count_ : 0;
    return at_;
  }

 private:
  std::uint64_t count_;
  std::uint64_t step_;
  std::uint64_t at_ = 0;
};

/// A fixed number of buffers, handed out in turn; each is laid out as one of a mempool.
class Buffers {
 public:
  static constexpr std::size_t kCount = 2048;

  Buffers();
  [[nodiscard]] rte_mbuf& next() {
    rte_mbuf& mbuf = elements_[at_]->mbuf();
    at_ = (at_ + 1) % kCount;
    return mbuf;
  }

 private:
  /// An mbuf, then its headroom and data room.
  struct alignas(RTE_CACHE_LINE_SIZE) Element {
    std::array<std::byte, sizeof(rte_mbuf) + RTE_PKTMBUF_HEADROOM + 2048> bytes{};
    [[nodiscard]] rte_mbuf& mbuf() { return *reinterpret_cast<rte_mbuf*>(bytes.data()); }
  };

  std::vector<std::unique_ptr<Element>> elements_;
  std::size_t at_ = 0;
};

/// A kind of packet, written over whatever the buffer held last. Only what the pipeline changes and
/// what makes the flow is written each time, so that writing costs next to nothing.
class Template {
 public:
  [[nodiscard]] static Template tcp(Family family, std::uint8_t flags, std::uint16_t payload = 0);
  [[nodiscard]] static Template udp(Family family, std::uint16_t payload = 10);
  /// A fragment in the middle of an IPv4 TCP packet; clients differ in the packet's number, not
  /// port.
  [[nodiscard]] static Template fragment();
  /// ICMP host unreachable, about a packet that the IPv4 VIP's TCP service sent to the client.
  [[nodiscard]] static Template icmp_error();

  /// All of it: once for each buffer before write() may be used on it.
  void lay_down(rte_mbuf& mbuf) const;
  /// Client number `flow`, below 2^40; distinct numbers are distinct tuples.
  void write(rte_mbuf& mbuf, std::uint64_t flow) const {
    mbuf.data_off = RTE_PKTMBUF_HEADROOM;
    mbuf.data_len = size_;
    mbuf.pkt_len = size_;
    auto* const frame = static_cast<std::uint8_t*>(mbuf.buf_addr) + RTE_PKTMBUF_HEADROOM;
    const std::uint16_t port = Be16::from_host(static_cast<std::uint16_t>(flow | 0x8000)).raw();
    const std::uint32_t host =
        Be32::from_host(kFirstClient + static_cast<std::uint32_t>(flow >> 15)).raw();
    std::memcpy(frame + 12, &ether_type_, 2);
    std::memcpy(frame + 14 + 2, &length_field_, 4);  // of either family: the length is in there
    std::memcpy(frame + client_at_, &host, 4);
    std::memcpy(frame + port_at_, &port, 2);
  }
  [[nodiscard]] std::uint16_t frame_size() const { return size_; }

 private:
  static constexpr std::uint32_t kFirstClient = 11u << 24;

  Template(Family family, IpProtocol protocol, std::uint8_t flags, std::uint16_t payload);

  template <class Header>
  void put(std::size_t at, const Header& header) {
    std::memcpy(bytes_.data() + at, &header, sizeof header);
  }
  /// What write() writes again each time stands in bytes_ now.
  void learn_what_changes();

  std::array<std::uint8_t, 128> bytes_{};
  std::uint16_t size_ = 0;
  std::uint16_t client_at_ = 0;  // the last four bytes of the source address
  std::uint16_t port_at_ = 0;
  std::uint16_t ether_type_ = 0;
  std::uint32_t length_field_ = 0;
};

/// Hands out what `feed()` returns, without end, and counts what becomes of it.
template <class Feed>
class MemoryIo final : public PacketIo {
 public:
  explicit MemoryIo(Feed feed) : feed_(std::move(feed)) {}

  [[nodiscard]] unsigned receive(std::span<rte_mbuf*> into) override {
    for (rte_mbuf*& mbuf : into) mbuf = feed_();
    return static_cast<unsigned>(into.size());
  }
  [[nodiscard]] unsigned transmit(PortNumber, std::span<rte_mbuf*> packets) override {
    sent += packets.size();
    return static_cast<unsigned>(packets.size());
  }
  [[nodiscard]] bool to_kernel(rte_mbuf*) override {
    ++given_to_kernel;
    return true;
  }
  void free(std::span<rte_mbuf*> packets) override { freed += packets.size(); }
  [[nodiscard]] PortNumber came_from(const rte_mbuf&) const override { return PortNumber{0}; }
  [[nodiscard]] rte_mbuf* allocate() override { return nullptr; }

  std::uint64_t sent = 0;
  std::uint64_t given_to_kernel = 0;
  std::uint64_t freed = 0;

 private:
  Feed feed_;
};

}  // namespace holdfast::bench

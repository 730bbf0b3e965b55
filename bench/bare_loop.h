// SPDX-License-Identifier: Apache-2.0
// The least that a load balancer with a flow table can do with an IPv4 TCP packet, written as one
// loop without any care for anything else: find the ports, make the 13 key bytes, hash them, look
// into one prefetched bucket of 64 bytes, write the outer header and the MACs. No checks beyond
// "IPv4 without options, TCP", no second bucket, no states, ages, counters, services or errors. The
// mark that the real pipeline is measured against. One thread.
#pragma once

#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <new>

#include "lb/flow/table_memory.h"
#include "lib/flow/flow_hash.h"
#include "lib/model/snapshot.h"
#include "lib/net/checksum.h"
#include "lib/net/headers.h"

namespace holdfast::bench {

class BareLoop {
 public:
  static constexpr unsigned kBatch = 32;

  /// As many entries as the real table has.
  BareLoop(const Snapshot& snapshot, std::uint64_t entries)
      : snapshot_(snapshot),
        buckets_((entries + 3) / 4),
        memory_(map_table_memory(buckets_ * sizeof(Bucket), -1)),
        table_(reinterpret_cast<Bucket*>(memory_->bytes().data())) {}

  /// Remembers the flow of a packet; overwrites another's entry when its bucket is full.
  void learn(const rte_mbuf& mbuf) {
    const FlowHash hash = hash_of(rte_pktmbuf_mtod(&mbuf, const std::uint8_t*));
    Bucket& bucket = table_[bucket_of(hash)];
    unsigned way = 0;
    while (way < 3 && bucket.entry[way][0] != 0) ++way;
    const auto& slots = *snapshot_.pools[0].effective;
    const auto owner = slots[maglev_slot(hash, static_cast<std::uint32_t>(slots.size()))];
    bucket.entry[way] = {tag_of(hash), index_of(owner)};
  }

  /// `feed()` returns the next packet. Returns how many were handled.
  template <class Feed>
  std::uint64_t run(Feed& feed, std::uint64_t packets) {
    std::array<rte_mbuf*, kBatch> mbufs;
    std::array<FlowHash, kBatch> hashes;
    std::array<Bucket*, kBatch> buckets;
    for (std::uint64_t done = 0; done < packets; done += kBatch) {
      for (unsigned i = 0; i < kBatch; ++i) {
        mbufs[i] = feed();
        const auto* frame = rte_pktmbuf_mtod(mbufs[i], const std::uint8_t*);
        if (!is_plain_tcp(frame)) continue;
        hashes[i] = hash_of(frame);
        buckets[i] = &table_[bucket_of(hashes[i])];
        rte_prefetch0(buckets[i]);
      }
      for (unsigned i = 0; i < kBatch; ++i) {
        const std::uint64_t tag = tag_of(hashes[i]);
        const Bucket& bucket = *buckets[i];
        unsigned way = 0;
        for (unsigned w = 1; w < 4; ++w) way = bucket.entry[w][0] == tag ? w : way;
        missed += bucket.entry[way][0] != tag;
        encapsulate(*mbufs[i], snapshot_.backends[bucket.entry[way][1]]);
      }
    }
    return packets;
  }

  std::uint64_t missed = 0;  // flows whose entry was overwritten: they take way 0's backend

 private:
  struct alignas(64) Bucket {
    std::array<std::array<std::uint64_t, 2>, 4> entry{};  // tag, backend
  };

  static bool is_plain_tcp(const std::uint8_t* frame) {
    std::uint16_t type;
    std::memcpy(&type, frame + 12, 2);
    return type == Be16::from_host(0x0800).raw() && frame[14] == 0x45 && frame[23] == 6;
  }
  FlowHash hash_of(const std::uint8_t* frame) const {
    // Addresses and ports lie together in a packet without options, in the order of the key.
    std::array<std::uint8_t, 13> key;
    std::memcpy(key.data(), frame + 26, 12);
    key[12] = 6;
    return hash_key_bytes<FlowKey::kV4Size>(key.data(), snapshot_.seed);
  }
  static std::uint64_t tag_of(const FlowHash& hash) { return hash.high64 | 1; }
  std::uint64_t bucket_of(const FlowHash& hash) const {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>(Wide{hash.low64} * buckets_ >> 64);
  }
  void encapsulate(rte_mbuf& mbuf, const Backend& backend) const {
    const NextHop& hop = snapshot_.next_hops[backend.first_next_hop];
    mbuf.data_off = static_cast<std::uint16_t>(mbuf.data_off - sizeof(Ipv4Header));
    auto* frame = rte_pktmbuf_mtod(&mbuf, std::uint8_t*);
    std::uint16_t inner_length;
    std::memcpy(&inner_length, frame + 34 + 2, 2);
    inner_length = __builtin_bswap16(inner_length);
    mbuf.data_len = static_cast<std::uint16_t>(34 + inner_length);
    mbuf.pkt_len = mbuf.data_len;
    auto* ethernet = new (frame)
        EthernetHeader{.destination = hop.destination,
                       .source = hop.source,
                       .ether_type = Be16::from_host(static_cast<std::uint16_t>(EtherType::ipv4))};
    auto* outer = new (ethernet + 1)
        Ipv4Header{.version_ihl = 0x45,
                   .type_of_service = 0,
                   .total_length = Be16::from_host(static_cast<std::uint16_t>(20 + inner_length)),
                   .identification = {},
                   .flags_fragment_offset = Be16::from_host(Ipv4Header::kDontFragment),
                   .time_to_live = 64,
                   .protocol = IpProtocol::ipv4,
                   .header_checksum = {},
                   .source = backend.tunnel_source.as_v4(),
                   .destination = backend.address.as_v4()};
    outer->header_checksum = ipv4_header_checksum(*outer);
  }

  const Snapshot& snapshot_;
  std::uint64_t buckets_;
  std::unique_ptr<TableMemory> memory_;  // of the kind that the real table has
  Bucket* table_;
};

}  // namespace holdfast::bench

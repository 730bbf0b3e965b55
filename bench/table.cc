// SPDX-License-Identifier: Apache-2.0
// The flow table's lookup beside rte_hash and absl::flat_hash_map, and what a flow takes in each.
// Keys, order and batches are the same, and each side makes and hashes its keys within the time.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/absl_rival.h"
#include "bench/bed.h"
#include "bench/groups.h"
#include "bench/rte_rival.h"
#include "lb/flow/flow_context.h"
#include "lib/flow/flow_hash.h"

namespace holdfast::bench {
namespace {

constexpr unsigned kBatch = 32;
constexpr std::uint64_t kSlice = 1 << 18;  // lookups
constexpr double kFill = 0.85;             // what ours is made for
constexpr HashSeed kSeed{0x5eed};

/// The key bytes of client number `flow`; below 2^32 they are distinct.
template <std::size_t kSize>
class Keys {
 public:
  using Key = std::array<std::uint8_t, kSize>;

  Keys() {
    const bool v4 = kSize == FlowKey::kV4Size;
    const IpAddress vip = IpAddress::parse(v4 ? "203.0.113.10" : "2001:db8:1::10").value();
    const IpAddress client = IpAddress::parse(v4 ? "11.0.0.0" : "2001:db8:2:3:4:5::").value();
    const FlowKey key(client, vip, Be16::from_host(0), Be16::from_host(443), IpProtocol::tcp);
    std::copy(key.bytes().begin(), key.bytes().end(), bytes_.begin());
  }
  void write(Key& key, std::uint64_t flow) const {
    constexpr std::size_t kWidth = kSize == FlowKey::kV4Size ? 4 : 16;
    key = bytes_;
    // An odd multiplier is a bijection: clients are spread over the addresses.
    const auto host = static_cast<std::uint32_t>(flow) * 0x9e3779b1u;
    const auto port = static_cast<std::uint16_t>(0x8000u | host >> 9);
    std::memcpy(key.data() + kWidth - 4, &host, 4);
    std::memcpy(key.data() + 2 * kWidth, &port, 2);
  }

 private:
  Key bytes_{};
};

/// Any backend, as long as all tables are told the same.
BackendNumber backend_of(std::uint64_t flow) {
  return static_cast<BackendNumber>(static_cast<std::uint16_t>(flow & 63));
}

class OurTable {
 public:
  explicit OurTable(std::uint64_t flows)
      : flows_({.capacity = static_cast<std::uint64_t>(static_cast<double>(flows) / kFill)}) {}

  [[nodiscard]] bool insert(const FlowHash& hash, BackendNumber backend, const Snapshot& snapshot) {
    return flows_.table.insert(
        hash,
        FlowEntry::make(flow_tag(hash), backend, kTcpService,
                        {FlowState::established, FlowLife::kProven}, false, FlowTime{0}),
        snapshot, FlowTime{0});
  }
  template <std::size_t kSize>
  void find(const std::array<std::array<std::uint8_t, kSize>, kBatch>& keys,
            std::array<BackendNumber, kBatch>& backends) const {
    std::array<FlowHash, kBatch> hashes;
    std::array<FlowTable::Buckets, kBatch> buckets;
    for (unsigned i = 0; i < kBatch; ++i) {
      hashes[i] = hash_key_bytes<kSize>(keys[i].data(), kSeed);
      buckets[i] = flows_.table.buckets_of(hashes[i]);
      flows_.table.prefetch(buckets[i]);
    }
    for (unsigned i = 0; i < kBatch; ++i) {
      const FlowTable::Place place = flows_.table.find(buckets[i], hashes[i]);
      backends[i] = place == FlowTable::kNowhere ? kNoBackend : flows_.table.at(place).backend();
    }
  }
  [[nodiscard]] std::uint64_t bytes() const { return flows_.table.capacity() * sizeof(FlowEntry); }

 private:
  FlowContext flows_;
};

/// Bytes a flow in ours over those in another's.
void add_bytes(Report& report, const std::string& prefix, double ours, double other,
               const std::string& name, std::optional<Goal> goal) {
  report.add(prefix + "/" + name + "/bytes a flow", other, "bytes");
  report.add(prefix + "/ours to " + name + ", bytes a flow", ours / other, "ratio", goal);
}

/// All of it with one kind of key and one number of flows.
template <std::size_t kSize>
class Comparison {
 public:
  explicit Comparison(std::uint64_t flows)
      : flows_(flows), ours_(flows), rte_(flows, kSize), absl_(flows) {
    const auto snapshot = make_snapshot();
    typename Keys<kSize>::Key key;
    for (std::uint64_t flow = 0; flow < flows; ++flow) {
      keys_.write(key, flow);
      not_recorded_ +=
          !ours_.insert(hash_key_bytes<kSize>(key.data(), kSeed), backend_of(flow), *snapshot);
      if (!rte_.insert(key.data(), backend_of(flow)))
        throw std::runtime_error("table: rte_hash has no room for its flows");
      absl_.insert(key, backend_of(flow));
    }
    if (absl_.size() != flows) throw std::runtime_error("table: keys are not distinct");
    // 1e-5 is what the table promises at this fill.
    if (not_recorded_ > flows / 100'000)
      throw std::runtime_error(fmt::format("table: {} flows were not recorded", not_recorded_));
  }

  void run(Report& report, const Options& options, const std::string& prefix) {
    std::array<Stride, 5> order{Stride{flows_}, Stride{flows_}, Stride{flows_}, Stride{flows_},
                                Stride{flows_}};
    const auto timings = race(
        {{"keys alone", [&] { return keys_alone(order[0]); }},
         {"ours",
          [&] { return slice(order[1], [&](auto& keys, auto& to) { ours_.find(keys, to); }); }},
         {"rte_hash",
          [&] { return slice(order[2], [&](auto& keys, auto& to) { by_rte(keys, to); }); }},
         {"absl", [&] { return by_absl(order[3], false); }},
         {"absl prefetched", [&] { return by_absl(order[4], true); }}},
        options.rounds());
    add_times(report, prefix, timings);
    constexpr bool kV4 = kSize == FlowKey::kV4Size;
    report.add({prefix + "/ours to rte_hash", Spread::of(ratios(timings[1], timings[2])), "ratio",
                kV4 ? std::optional(at_most(0.5)) : std::nullopt});
    report.add({prefix + "/ours to absl", Spread::of(ratios(timings[1], timings[3])), "ratio"});
    report.add(
        {prefix + "/ours to absl prefetched", Spread::of(ratios(timings[1], timings[4])), "ratio"});

    const auto flows = static_cast<double>(flows_);
    const double ours = static_cast<double>(ours_.bytes()) / flows;
    const auto goal = kV4 ? std::nullopt : std::optional(at_most(0.5));
    report.add(prefix + "/ours/bytes a flow", ours, "bytes");
    add_bytes(report, prefix, ours, static_cast<double>(rte_.bytes()) / flows, "rte_hash", goal);
    add_bytes(report, prefix, ours, static_cast<double>(absl_.bytes()) / flows, "absl", goal);
  }

 private:
  using Batch = std::array<typename Keys<kSize>::Key, kBatch>;
  using Backends = std::array<BackendNumber, kBatch>;

  void by_rte(const Batch& keys, Backends& backends) const {
    std::array<const void*, kBatch> pointers;
    for (unsigned i = 0; i < kBatch; ++i) pointers[i] = keys[i].data();
    rte_.find(pointers, backends);
  }
  std::uint64_t by_absl(Stride& order, bool ahead) const {
    return slice(order, [&](auto& keys, auto& to) { absl_.find(keys, to, ahead); });
  }
  /// What all of them pay before they look anything up.
  std::uint64_t keys_alone(Stride& order) const {
    std::uint64_t sum = 0;
    Batch keys;
    for (std::uint64_t done = 0; done < kSlice; done += kBatch) {
      for (auto& key : keys) keys_.write(key, order.next());
      for (const auto& key : keys) sum += key[kSize / 3];
    }
    keep(sum);
    return kSlice;
  }

  /// A slice of lookups by `find`, which goes on in `order` where its last slice ended: all
  /// contenders see the same flows in the same order.
  template <class Find>
  std::uint64_t slice(Stride& order, Find find) const {
    std::uint64_t missed = 0;
    std::uint64_t sum = 0;  // of the backends that were found, less that of those that are right
    Batch keys;
    Backends backends{};
    for (std::uint64_t done = 0; done < kSlice; done += kBatch) {
      for (auto& key : keys) {
        const std::uint64_t flow = order.next();
        keys_.write(key, flow);
        sum -= index_of(backend_of(flow));
      }
      find(keys, backends);
      for (const BackendNumber backend : backends) {
        missed += backend == kNoBackend;
        sum += index_of(backend);
      }
    }
    // No flow comes twice in a slice, so only those that were not recorded may be missed.
    if (missed > not_recorded_ || (missed == 0 && sum != 0))
      throw std::runtime_error(
          fmt::format("table: of {} lookups {} missed, or some were wrong", kSlice, missed));
    return kSlice;
  }

  std::uint64_t flows_;
  Keys<kSize> keys_{};
  OurTable ours_;
  RteHashRival rte_;
  AbslRival<kSize> absl_;
  std::uint64_t not_recorded_ = 0;  // by ours
};

template <std::size_t kSize>
void compare(Report& report, const Options& options, std::uint64_t flows) {
  const char* const family = kSize == FlowKey::kV4Size ? "IPv4" : "IPv6";
  auto comparison = std::make_unique<Comparison<kSize>>(flows);
  comparison->run(report, options, fmt::format("table/{} {}M", family, flows / 1'000'000));
}

/// The number of flows at which absl is fullest: seven eighths of a power of two.
void absl_at_its_best(Report& report) {
  constexpr std::uint64_t kFlows = std::uint64_t{7} << 17;
  const AbslRival<FlowKey::kV6Size> absl(kFlows);
  const OurTable ours(kFlows);
  add_bytes(report, fmt::format("table/IPv6 {}", kFlows),
            static_cast<double>(ours.bytes()) / kFlows, static_cast<double>(absl.bytes()) / kFlows,
            "absl at its fullest", at_most(0.5));
}

}  // namespace

void run_table(Report& report, const Options& options) {
  const Eal eal = start_eal();
  for (const std::uint64_t flows : {std::uint64_t{1'000'000}, std::uint64_t{10'000'000}}) {
    if (options.quick && flows > 1'000'000) continue;
    compare<FlowKey::kV4Size>(report, options, flows);
    compare<FlowKey::kV6Size>(report, options, flows);
  }
  absl_at_its_best(report);
}

}  // namespace holdfast::bench

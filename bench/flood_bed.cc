// SPDX-License-Identifier: Apache-2.0
#include "bench/flood_bed.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "lib/maglev/maglev.h"

namespace holdfast::bench {
namespace {

using namespace std::chrono_literals;

constexpr std::uint16_t kBackends = 100;
constexpr std::uint16_t kAdded = 5;
constexpr std::uint16_t kRemoved = 2;
constexpr Instant kStart = 1000s;
constexpr Instant kPeriodOfLife = 10s;    // lb/flow/flow_life.h: kPeriod
constexpr std::uint64_t kWave = 1 << 15;  // clients that open at once

template <class Header>
Header header_at(const rte_mbuf& mbuf, std::size_t offset) {
  Header header;
  std::memcpy(&header, rte_pktmbuf_mtod_offset(&mbuf, const std::uint8_t*, offset), sizeof header);
  return header;
}

}  // namespace

unsigned BurstIo::receive(std::span<rte_mbuf*> into) {
  const std::size_t count = std::min(into.size(), waiting_.size());
  std::copy_n(waiting_.begin(), count, into.begin());
  waiting_ = waiting_.subspan(count);
  return static_cast<unsigned>(count);
}

FloodBed::FloodBed(std::uint64_t capacity, std::uint64_t clients)
    : snapshot_(make_snapshot({.backends = kBackends + kAdded})),
      flows_({.capacity = capacity, .start = kStart}),
      sibling_({.capacity = capacity, .start = kStart}),
      worker_({.io = io_, .flows = flows_, .counters = *counters_}),
      time_(kStart),
      syn_(Template::tcp(Family::ipv4, TcpHeader::kSyn)),
      ack_(Template::tcp(Family::ipv4, TcpHeader::kAck)),
      data_(Template::tcp(Family::ipv4, TcpHeader::kAck | TcpHeader::kPsh, 100)),
      home_(clients, kNoBackend) {
  const std::array workers{&flows_, &sibling_};
  FlowContext::connect(workers);
  configure(0, kBackends);
  first_slots_ = snapshot_->pools[0].effective;
  open_all();
  configure(kRemoved, kBackends + kAdded);
  // Placed anew, established, and active in two further periods.
  for (int round = 0; round < 4; ++round) settle();
  if (table().established != clients)
    throw std::runtime_error("not every client's flow has an entry");
}

BackendNumber FloodBed::went_to(const rte_mbuf& mbuf) {
  if (mbuf.data_off >= RTE_PKTMBUF_HEADROOM) return kNoBackend;
  const auto outer = header_at<Ipv4Header>(mbuf, sizeof(EthernetHeader));
  // make_snapshot() numbers the backends' addresses from ...1 on.
  return static_cast<BackendNumber>(static_cast<std::uint16_t>(outer.destination.host() - 1));
}

FlowHash FloodBed::hash_of(std::uint64_t client) {
  const rte_mbuf& mbuf = *data_.of(client);
  const auto ip = header_at<Ipv4Header>(mbuf, sizeof(EthernetHeader));
  const auto tcp = header_at<TcpHeader>(mbuf, sizeof(EthernetHeader) + sizeof(Ipv4Header));
  return hash_flow(FlowKey(IpAddress::v4(ip.source), IpAddress::v4(ip.destination), tcp.source_port,
                           tcp.destination_port, IpProtocol::tcp),
                   snapshot_->seed);
}

bool FloodBed::is_recorded(std::uint64_t client) {
  return flows_.table.find(hash_of(client)) != FlowTable::kNowhere;
}

void FloodBed::configure(std::uint16_t from, std::uint16_t to) {
  std::vector<MaglevBackend> members;
  for (std::uint16_t number = 0; number < snapshot_->backends.size(); ++number) {
    Backend& backend = snapshot_->backends[number];
    backend.present = number >= from && number < to;
    if (backend.present) members.push_back({backend.address, 100});
  }
  auto slots = std::make_shared<SlotTable>();
  const auto size = static_cast<std::uint32_t>(snapshot_->pools[0].base->size());
  for (const std::uint16_t owner : build_maglev(members, snapshot_->seed, size))
    slots->push_back(static_cast<BackendNumber>(from + owner));
  snapshot_->pools[0].base = slots;
  snapshot_->pools[0].effective = slots;
}

void FloodBed::bring_back() { configure(0, kBackends + kAdded); }

void FloodBed::open_all() {
  const auto send = [this](std::uint64_t begin, std::uint64_t end, auto packet) {
    for (std::uint64_t client = begin; client < end; client += Burst::kCapacity) {
      const auto count = std::min<std::uint64_t>(Burst::kCapacity, end - client);
      for (std::uint64_t i = 0; i < count; ++i) burst_[i] = packet(client + i);
      poll({burst_.data(), count});
      pass(3us);
    }
  };
  for (std::uint64_t begin = 0; begin < clients(); begin += kWave) {
    const std::uint64_t end = std::min(clients(), begin + kWave);
    send(begin, end, [this](std::uint64_t client) { return syn(client); });
    pass(50ms);
    send(begin, end, [this](std::uint64_t client) { return ack(client); });
  }
}

std::span<rte_mbuf* const> FloodBed::send_data(std::uint64_t first) {
  const auto count = std::min<std::uint64_t>(Burst::kCapacity, clients() - first);
  for (std::uint64_t i = 0; i < count; ++i) burst_[i] = data(first + i);
  poll({burst_.data(), count});
  pass(3us);
  return {burst_.data(), count};
}

void FloodBed::settle() {
  pass(kPeriodOfLife);
  for (std::uint64_t client = 0; client < clients();)
    for (const rte_mbuf* mbuf : send_data(client)) home_[client++] = went_to(*mbuf);
}

std::uint64_t FloodBed::count_moved() {
  std::uint64_t moved = 0;
  for (std::uint64_t client = 0; client < clients();)
    for (const rte_mbuf* mbuf : send_data(client)) moved += went_to(*mbuf) != home_[client++];
  return moved;
}

double FloodBed::share_of_slots_moved() const {
  const SlotTable& now = *snapshot_->pools[0].effective;
  std::size_t moved = 0;
  for (std::size_t slot = 0; slot < now.size(); ++slot) moved += now[slot] != (*first_slots_)[slot];
  return static_cast<double>(moved) / static_cast<double>(now.size());
}

double FloodBed::share_held_by_entries() {
  const SlotTable& slots = *snapshot_->pools[0].effective;
  std::uint64_t held = 0;
  for (std::uint64_t client = 0; client < clients(); ++client) {
    const std::uint32_t slot =
        maglev_slot(hash_of(client), static_cast<std::uint32_t>(slots.size()));
    held += slots[slot] != home_[client];
  }
  return static_cast<double>(held) / static_cast<double>(clients());
}

}  // namespace holdfast::bench

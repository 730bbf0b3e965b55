// SPDX-License-Identifier: Apache-2.0
#include "lb/flow/lookup.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "lb/flow/placement.h"
#include "lib/net/parse.h"

namespace holdfast {
namespace {

using Sighting = FlowTable::Sighting;

/// One sighting or none for each worker.
using Sightings = std::vector<std::optional<Sighting>>;

class FrameWriter {
 public:
  template <class Header>
  void put(const Header& header) {
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(&header);
    frame_.insert(frame_.end(), bytes, bytes + sizeof header);
  }
  [[nodiscard]] const std::vector<std::uint8_t>& frame() const { return frame_; }

 private:
  std::vector<std::uint8_t> frame_;
};

TcpHeader tcp_of(const FlowQuestion& question) {
  TcpHeader tcp{};
  tcp.source_port = Be16::from_host(question.client_port);
  tcp.destination_port = Be16::from_host(question.vip_port);
  tcp.data_offset = 5 << 4;
  tcp.flags = TcpHeader::kAck;
  return tcp;
}

UdpHeader udp_of(const FlowQuestion& question) {
  UdpHeader udp{};
  udp.source_port = Be16::from_host(question.client_port);
  udp.destination_port = Be16::from_host(question.vip_port);
  udp.length = Be16::from_host(sizeof udp);
  return udp;
}

Ipv4Header ipv4_of(const FlowQuestion& question, std::uint16_t payload) {
  Ipv4Header ip{};
  ip.version_ihl = 0x45;
  ip.total_length = Be16::from_host(static_cast<std::uint16_t>(sizeof ip + payload));
  ip.time_to_live = 64;
  ip.protocol = question.protocol;
  ip.source = question.client.as_v4();
  ip.destination = question.vip.as_v4();
  return ip;
}

Ipv6Header ipv6_of(const FlowQuestion& question, std::uint16_t payload) {
  Ipv6Header ip{};
  ip.version_class_label = Be32::from_host(0x60000000);
  ip.payload_length = Be16::from_host(payload);
  ip.next_header = question.protocol;
  ip.hop_limit = 64;
  ip.source = question.client.bytes();
  ip.destination = question.vip.bytes();
  return ip;
}

/// The smallest packet of the flow, so that parse_packet() can say what it makes of it.
std::vector<std::uint8_t> packet_of(const FlowQuestion& question) {
  const bool v4 = question.client.is_v4();
  const bool tcp = question.protocol == IpProtocol::tcp;
  const std::uint16_t payload = tcp ? sizeof(TcpHeader) : sizeof(UdpHeader);
  FrameWriter writer;
  EthernetHeader ethernet{};
  ethernet.ether_type =
      Be16::from_host(static_cast<std::uint16_t>(v4 ? EtherType::ipv4 : EtherType::ipv6));
  writer.put(ethernet);
  if (v4)
    writer.put(ipv4_of(question, payload));
  else
    writer.put(ipv6_of(question, payload));
  if (tcp)
    writer.put(tcp_of(question));
  else
    writer.put(udp_of(question));
  return writer.frame();
}

class Lookup {
 public:
  /// `refused`: why a packet of a flow that its worker does not know is dropped, if it is.
  Lookup(const Placement& flow, Sightings sightings, std::optional<DropReason> refused)
      : flow_(flow), sightings_(std::move(sightings)), refused_(refused) {}

  /// A packet that is neither the first nor the last of its flow; of UDP any.
  [[nodiscard]] FlowChoice next(std::size_t worker) const {
    const bool tcp = flow_.service.protocol == IpProtocol::tcp;
    return choose(worker, tcp ? FlowEvent::payload : FlowEvent::datagram, FlowTime{0});
  }
  [[nodiscard]] FlowChoice syn(std::size_t worker, FlowTime silent) const {
    return choose(worker, FlowEvent::syn, silent);
  }

  [[nodiscard]] std::vector<FlowSighting> tables() const {
    std::vector<FlowSighting> tables;
    for (unsigned worker = 0; worker < sightings_.size(); ++worker) {
      const auto& seen = sightings_[worker];
      if (!seen) continue;
      auto state = FlowSighting::State::established;
      if (seen->life.state == FlowState::embryonic) state = FlowSighting::State::embryonic;
      if (seen->life.closing()) state = FlowSighting::State::closing;
      tables.push_back({.worker = worker,
                        .backend = seen->backend,
                        .state = state,
                        .proven = seen->life.proven >= FlowLife::kProven,
                        .stays = flow_.standing(seen->backend) != Standing::gone});
    }
    return tables;
  }

 private:
  /// The order of pick_backend: the worker's own table, another's, Maglev.
  [[nodiscard]] FlowChoice choose(std::size_t worker, FlowEvent event, FlowTime idle) const {
    if (flow_.service.stateless && !refused_)
      return to(FlowRule::stateless, flow_.pick_stateless());
    if (flow_.service.stateless) return {.rule = FlowRule::stateless, .dropped = refused_};
    if (const auto& own = sightings_[worker]) {
      if (stays(*own, event, idle)) return to(FlowRule::own_table, own->backend);
      return by_slot(flow_.pick_anew(event));
    }
    if (refused_) return {.rule = FlowRule::slot, .dropped = refused_};
    if (may_be_elsewhere(event)) {
      const auto other = std::find_if(sightings_.begin(), sightings_.end(),
                                      [](const auto& seen) { return seen.has_value(); });
      if (other != sightings_.end() && stays(**other, event, FlowTime{0}))
        return to(FlowRule::other_table, (*other)->backend);
    }
    return by_slot(flow_.pick_for_unknown(event));
  }

  [[nodiscard]] bool stays(const Sighting& seen, FlowEvent event, FlowTime idle) const {
    return !flow_.meet(seen.life, seen.backend, event, idle, idle).anew;
  }

  [[nodiscard]] FlowChoice by_slot(BackendNumber backend) const {
    const BackendNumber unchecked = flow_.unchecked_owner();
    const bool waits = flow_.awaits_check() && backend == kNoBackend;
    const bool back = unchecked != kNoBackend && backend == unchecked;
    if (waits || back) return to(FlowRule::unchecked_base, backend);
    const bool grace = backend != kNoBackend && backend == flow_.owner_in_grace();
    return to(grace ? FlowRule::base_in_grace : FlowRule::slot, backend);
  }

  [[nodiscard]] FlowChoice to(FlowRule rule, BackendNumber backend) const {
    FlowChoice choice{.rule = rule, .backend = backend};
    const Backend* const chosen = flow_.snapshot.backend(backend);
    if (chosen == nullptr)
      choice.dropped = DropReason::no_backend;
    else if (chosen->next_hop_count == 0)
      choice.dropped = DropReason::neigh_unresolved;
    return choice;
  }

  const Placement& flow_;
  Sightings sightings_;
  std::optional<DropReason> refused_;
};

/// A VIP is no client.
std::optional<DropReason> refusal_of(const IpAddress& client, const Snapshot& snapshot) {
  if (!snapshot.service_table.is_vip(client)) return std::nullopt;
  return client.is_v4() ? DropReason::ipv4_source_is_vip : DropReason::ipv6_source_is_vip;
}

}  // namespace

FlowAnswer look_up_flow(const FlowQuestion& question, const Snapshot& snapshot,
                        std::span<const FlowTable* const> tables) {
  FlowAnswer answer;
  ParsedPacket packet;
  const auto parsed = parse_packet(packet_of(question), packet);
  answer.is_vip = snapshot.service_table.is_vip(packet.vip);
  if (!answer.is_vip) return answer;
  if (parsed.verdict.decided()) {
    answer.dropped = parsed.verdict.reason;
    return answer;
  }
  const auto match =
      snapshot.service_table.lookup(packet.vip, packet.protocol, packet.service_port);
  answer.service = match.service;
  if (answer.service == kNoService) {
    answer.dropped = DropReason::unknown_port;
    answer.rejected = match.options.reject_unknown_port;
    return answer;
  }

  const Placement flow{snapshot, *snapshot.service(answer.service),
                       hash_flow(packet.key, snapshot.seed)};
  answer.tag = flow_tag(flow.hash);
  const auto& base = snapshot.pool(flow.service.pool).base;
  if (base && !base->empty()) {
    answer.slots = static_cast<std::uint32_t>(base->size());
    answer.slot = maglev_slot(flow.hash, answer.slots);
  }
  answer.base_owner = flow.base_owner();
  answer.effective_owner = flow.effective_owner();

  Sightings sightings;
  answer.stateless = flow.service.stateless;
  if (!answer.stateless)
    for (const FlowTable* const table : tables) sightings.push_back(table->peek(flow.hash));
  const Lookup lookup(flow, std::move(sightings), refusal_of(question.client, snapshot));
  answer.tables = lookup.tables();
  for (std::size_t worker = 0; worker < tables.size(); ++worker) {
    WorkerChoice choice{.next = lookup.next(worker)};
    if (question.protocol == IpProtocol::tcp) {
      choice.syn = lookup.syn(worker, FlowTime{0});
      choice.syn_after_silence = lookup.syn(worker, kRecent);
    } else {
      choice.syn = choice.syn_after_silence = choice.next;
    }
    answer.workers.push_back(choice);
  }
  return answer;
}

}  // namespace holdfast

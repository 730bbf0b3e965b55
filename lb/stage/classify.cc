// SPDX-License-Identifier: Apache-2.0
#include "lb/flow/flow_table.h"
#include "lb/stage/stages.h"
#include "lib/flow/flow_hash.h"

namespace holdfast {

namespace {

/// To a VIP, but for no service of it. Not inlined: hardly any packet comes here.
[[gnu::noinline]] void meet_no_service(Burst& burst, Burst::Lane lane, VipOptions vip) {
  const PacketKind kind = burst.packet[lane].kind;
  switch (kind) {
    case PacketKind::tcp:
    case PacketKind::udp:
      if (vip.reject_unknown_port)
        burst.answer_with(lane, {.kind = kind == PacketKind::tcp ? AnswerKind::reset
                                                                 : AnswerKind::port_unreachable});
      else
        burst.drop(lane, DropReason::unknown_port);
      return;
    case PacketKind::later_fragment:
      // What is to be said was said about the first one.
      burst.drop(lane, DropReason::unknown_port);
      return;
    case PacketKind::icmp_error:
      burst.drop(lane, DropReason::icmp_unknown_service);
      return;
    case PacketKind::echo_request:
      if (vip.echo)
        burst.answer_with(lane, {.kind = AnswerKind::echo_reply});
      else
        burst.drop(lane, DropReason::echo_off);
      return;
  }
}

}  // namespace

void classify(Burst& burst, const Snapshot& now, const FlowTable& table, TokenBucket& icmp_relay,
              Instant time) noexcept {
  burst.for_undecided([&](Burst::Lane lane) {
    const ParsedPacket& packet = burst.packet[lane];
    const auto match = now.service_table.lookup(packet.vip, packet.protocol, packet.service_port);
    if (!match.is_vip) {
      burst.verdict[lane] = Verdict::kernel();
      return;
    }
    const bool icmp_error = packet.kind == PacketKind::icmp_error;
    if (match.service == kNoService) {
      meet_no_service(burst, lane, match.options);
      return;
    }
    // Only errors that would be relayed use up the rate, so nonsense can not starve real ones.
    if (icmp_error && !icmp_relay.take(time)) {
      burst.drop(lane, DropReason::icmp_rate_limited);
      return;
    }
    burst.service[lane] = match.service;
    // Here and not in a loop of its own: the work on the next packets goes on while a bucket comes.
    burst.hash[lane] = hash_flow_inline(packet.key, now.seed);
    burst.buckets[lane] = table.buckets_of(burst.hash[lane]);
    table.prefetch(burst.buckets[lane]);
  });
}

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// Any bytes as what an ICMP error quotes: the error itself is good, so all of the input meets the
// code that reads quotes. A sane end (tests/dsl/sane_end.h); and an error that is forwarded goes
// where the packets of the flow go that it is about, as look_up_flow() tells it.
//
// The first byte of an input chooses the family, the rest is the quote.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "lb/flow/lookup.h"
#include "lib/net/parse.h"
#include "tests/dsl/describe.h"
#include "tests/dsl/samples.h"
#include "tests/dsl/sane_end.h"

namespace {

using namespace holdfast;
using namespace holdfast::dsl;

/// Some flows have an entry, the others are where their slots are.
bool open_flows(LbUnderTest& lb) {
  for (std::uint16_t port = 40000; port < 40016; ++port)
    lb.handle(Eth{} / Ip4{} / Tcp{.sport = port, .flags = Syn});
  return true;
}

/// The flow that the parser reads out of an error, from the bytes that are hashed.
FlowQuestion flow_of(const ParsedPacket& packet) {
  const auto key = packet.key.bytes();
  const std::size_t width = packet.family == Family::ipv4 ? 4 : 16;
  const auto address = [&](std::size_t at) {
    IpAddress::Bytes bytes{};
    std::copy_n(key.begin() + static_cast<std::ptrdiff_t>(at), width, bytes.begin());
    if (width == 16) return IpAddress::v6(bytes);
    return IpAddress::v4(std::bit_cast<Be32>(std::array{bytes[0], bytes[1], bytes[2], bytes[3]}));
  };
  const auto port = [&](std::size_t at) {
    return static_cast<std::uint16_t>(key[at] * 256u + key[at + 1]);
  };
  return {.protocol = packet.protocol,
          .client = address(0),
          .client_port = port(2 * width),
          .vip = address(width),
          .vip_port = port(2 * width + 2)};
}

void require_as_looked_up(const LbUnderTest& lb, const Bytes& frame, const Handled& handled) {
  ParsedPacket packet;
  if (parse_packet(frame, packet).verdict.decided() || packet.kind != PacketKind::icmp_error)
    throw std::logic_error("forwarded, but not as an ICMP error");
  const FlowTable* const table = &lb.flows.table;
  const auto answer = look_up_flow(flow_of(packet), lb.snapshot(), {&table, 1});
  // A quote may name a client that no packet could come from.
  if (answer.dropped) return;
  const Packet sent = decode(handled.frame);
  const auto& outer = sent.layers().at(std::holds_alternative<Vlan>(sent.layers().at(1)) ? 2 : 1);
  const IpAddress to =
      std::holds_alternative<Ip4>(outer) ? std::get<Ip4>(outer).dst : std::get<Ip6>(outer).dst;
  if (lb.snapshot().backend(answer.workers.at(0).next.backend)->address != to)
    throw std::logic_error("not where its flow goes");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static LbUnderTest lb(sample_services(), {.icmp_relay_rate = 0xffffffff});
  static const bool opened = open_flows(lb);
  if (!opened || size == 0 || size > 1300) return 0;
  const bool v6 = (data[0] & 1) != 0;
  const Raw quoted{Bytes(data + 1, data + size)};
  const Packet packet =
      v6 ? Eth{} / Ip6{.src = "2001:db8:51::fe"} / Icmp6{.type = 1} / quoted
         : Eth{} / Ip4{.src = "198.51.100.254"} / Icmp{.type = 3, .code = 4} / quoted;
  try {
    const Bytes frame = packet.bytes();
    const Handled handled = require_sane_end(lb, frame);
    if (handled.kind == Handled::Kind::sent) require_as_looked_up(lb, frame, handled);
  } catch (const std::logic_error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    std::abort();
  }
  return 0;
}

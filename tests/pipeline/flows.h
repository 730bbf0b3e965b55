// SPDX-License-Identifier: Apache-2.0
// What the pipeline tests about flows share: a client's packets, named by its port, and which
// backend they go to.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "tests/dsl/expect.h"

namespace holdfast::dsl {

using namespace std::chrono_literals;

inline const Ip kB1 = "192.0.2.21";
inline const Ip kB2 = "192.0.2.22";
inline const Ip kB3 = "192.0.2.23";

/// A client's segment; `bytes` of payload.
[[nodiscard]] inline Packet segment(std::uint16_t client, std::uint8_t flags,
                                    std::size_t bytes = 0) {
  const Packet bare = Eth{} / Ip4{} / Tcp{.sport = client, .flags = flags};
  return bytes == 0 ? bare : bare / payload(bytes);
}
[[nodiscard]] inline Packet syn(std::uint16_t client) { return segment(client, Syn); }
[[nodiscard]] inline Packet ack(std::uint16_t client) { return segment(client, Ack); }
[[nodiscard]] inline Packet data(std::uint16_t client) { return segment(client, Ack | Psh, 100); }
[[nodiscard]] inline Packet fin(std::uint16_t client) { return segment(client, Fin | Ack); }
[[nodiscard]] inline Packet rst(std::uint16_t client) { return segment(client, Rst); }
[[nodiscard]] inline Packet datagram(std::uint16_t client) {
  return Eth{} / Ip4{} / Udp{.sport = client} / payload(100);
}

/// Where a packet was tunnelled to. Fails the test when it was not sent.
[[nodiscard]] inline Ip destination(const Handled& handled) {
  REQUIRE(handled.kind == Handled::Kind::sent);
  return layer<Ip4>(handled).dst;
}
[[nodiscard]] inline Ip goes_to(LbUnderTest& lb, const Packet& packet) {
  return destination(lb.handle(packet));
}

/// A web service over some of kB1, kB2, kB3.
[[nodiscard]] inline ServiceSpec web(std::initializer_list<Ip> backends) {
  ServiceSpec spec = service("203.0.113.10", tcp(80));
  for (const Ip& address : backends) spec = spec.to(address);
  return spec;
}
[[nodiscard]] inline ServiceSpec udp_web(std::initializer_list<Ip> backends) {
  ServiceSpec spec = service("203.0.113.10", udp(443));
  for (const Ip& address : backends) spec = spec.to(address);
  return spec;
}

/// SYN, ACK, request.
inline Ip open_flow(LbUnderTest& lb, std::uint16_t client) {
  const Ip backend = goes_to(lb, syn(client));
  REQUIRE(goes_to(lb, ack(client)) == backend);
  REQUIRE(goes_to(lb, data(client)) == backend);
  return backend;
}

/// Opens flows from client port `first` on until `count` are on `backend`; their client ports.
inline std::vector<std::uint16_t> open_flows_on(LbUnderTest& lb, Ip backend, std::size_t count,
                                                std::uint16_t first = 1000) {
  std::vector<std::uint16_t> clients;
  for (std::uint16_t client = first; clients.size() < count; ++client)
    if (open_flow(lb, client) == backend) clients.push_back(client);
  return clients;
}

/// The flow table's entry of a TCP client. Fails the test when there is none.
[[nodiscard]] inline FlowEntry entry_of(const LbUnderTest& lb, std::uint16_t client) {
  const FlowKey key(Ip4{}.src, Ip4{}.dst, Be16::from_host(client), Be16::from_host(80),
                    IpProtocol::tcp);
  const auto place = lb.flows.table.find(hash_flow(key, lb.snapshot().seed));
  REQUIRE(place != FlowTable::kNowhere);
  return lb.flows.table.at(place);
}

inline void set_state(LbUnderTest& lb, Ip address, BackendState state) {
  lb.backend(address).state = state;
  lb.publish();
}

[[nodiscard]] inline std::uint64_t new_flows(const LbUnderTest& lb, Ip backend) {
  return lb.counters_of_backend(backend).new_flows;
}

}  // namespace holdfast::dsl

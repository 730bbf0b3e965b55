// SPDX-License-Identifier: Apache-2.0
// What the pipeline tests about fragments share: services of both families, a client's datagrams in
// pieces, and where all of them went.
#pragma once

#include <vector>

#include "tests/dsl/fragments.h"
#include "tests/pipeline/flows.h"

namespace holdfast::dsl {

[[nodiscard]] inline std::vector<ServiceSpec> both_services() {
  return {service({"203.0.113.10", "2001:db8::10"}, tcp(80)).to(kB1).to(kB2).to(kB3),
          service({"203.0.113.10", "2001:db8::10"}, udp(443)).to(kB1).to(kB2).to(kB3)};
}

/// A client's UDP datagram of `bytes`, whole or in pieces of 800.
struct Client {
  Family family = Family::ipv4;
  std::uint16_t port = 40000;

  [[nodiscard]] Packet whole(std::size_t bytes = 2000, std::uint16_t id = 7) const {
    const Packet udp = Udp{.sport = port} / payload(bytes);
    return family == Family::ipv4 ? Eth{} / Ip4{.id = id, .df = false} / udp : Eth{} / Ip6{} / udp;
  }
  [[nodiscard]] std::vector<Packet> pieces(std::size_t bytes = 2000, std::uint16_t id = 7) const {
    return fragments_of(whole(bytes, id), 800, id);
  }
};

/// The frame that tunnels `packet`, which begins with Ethernet, to `backend`.
[[nodiscard]] inline Packet tunnelled(const Packet& packet, Ip backend) {
  auto layers = packet.layers();
  layers.erase(layers.begin());
  return from_lb / Ip4{.src = "192.0.2.1", .dst = backend} / Packet(layers);
}

/// Each of them was tunnelled to `backend`.
inline void check_all_went_to(Ip backend, const std::vector<Handled>& all) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    CAPTURE(i);
    REQUIRE(all[i].kind == Handled::Kind::sent);
    CHECK(layer<Ip4>(all[i]).dst == backend);
  }
}

[[nodiscard]] inline FragmentReasons reasons_of(const Client& client) {
  return fragment_reasons(client.family);
}

}  // namespace holdfast::dsl

// SPDX-License-Identifier: Apache-2.0
// Any bytes as an answer of the kernel: parsed, taken into the view, and resolved.
#include <cstdint>
#include <span>

#include "ctrl/netlink/resolve.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace holdfast;
  netlink::KernelView view;
  netlink::RouteAnswer answer;
  netlink::parse_messages(
      std::as_bytes(std::span(data, size)), [&](const netlink::Message& message) {
        if (const auto* link = std::get_if<netlink::Link>(&message.body)) {
          view.take(*link);
        } else if (const auto* entry = std::get_if<netlink::Neighbour>(&message.body)) {
          view.take(*entry);
        } else if (const auto* route = std::get_if<netlink::Route>(&message.body)) {
          answer.route = *route;
        } else {
          answer.error = std::get<netlink::End>(message.body).error;
        }
      });
  // The ports are whatever links came, so that hops resolve.
  std::vector<PortDescription> ports;
  for (const auto& [index, link] : view.links()) {
    if (ports.size() < 4)
      ports.push_back({.name = "p", .interface = link.name, .interface_index = index, .mtu = 1500});
  }
  const auto domains = netlink::routing_domains(view, ports);
  const auto backend = IpAddress::v4(Be32::from_host(0xc0000215));
  const auto result = netlink::resolve(backend, answer, view, ports);
  return result.route.next_hops.size() > size || domains.size() > view.links().size() + 1 ? -1 : 0;
}

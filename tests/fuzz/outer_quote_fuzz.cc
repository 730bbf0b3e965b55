// SPDX-License-Identifier: Apache-2.0
// Fragmentation-needed and Packet Too Big messages from strangers: nothing is read beyond their
// end, and what is believed keeps to its bounds. The first byte says which of the two it is. The
// checksum of IPv4 is set right, else hardly any message would get past it.
#include <cstdlib>
#include <cstring>
#include <vector>

#include "lib/net/checksum.h"
#include "lib/net/outer_quote.h"

using namespace holdfast;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

/// Writes the right checksum where an ICMP header would have it.
void mend(std::vector<std::uint8_t>& message) {
  if (message.size() < sizeof(Ipv4Header)) return;
  const std::size_t icmp = (message[0] & 0xfu) * std::size_t{4};
  const std::size_t end = std::size_t{message[2]} << 8 | message[3];
  if (end > message.size() || icmp + sizeof(IcmpHeader) > end) return;
  message[icmp + 2] = message[icmp + 3] = 0;
  const Be16 sum = checksum_finish(checksum_add(std::span(message).subspan(icmp, end - icmp)));
  std::memcpy(message.data() + icmp + 2, &sum, sizeof sum);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const Family family = (data[0] & 1) == 0 ? Family::ipv4 : Family::ipv6;
  // Memory of just this size, so that a byte beyond it is found.
  std::vector<std::uint8_t> message(data + 1, data + size);
  if (family == Family::ipv4) mend(message);
  const auto quote = read_outer_quote(family, message);
  if (!quote) return 0;
  require(quote->mtu >= least_path_mtu(family));
  require(quote->source.family() == family && quote->destination.family() == family);
  require(quote->protocol == IpProtocol::udp || quote->destination_port == Be16{});
  return 0;
}

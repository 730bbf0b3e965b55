// SPDX-License-Identifier: Apache-2.0
#include "lb/encap/encap.h"

#include "lb/encap/ipip.h"

namespace holdfast {

void write_tunnel(std::uint8_t* at, const Tunnel& tunnel) noexcept {
  switch (tunnel.backend.encapsulation) {
    case Encapsulation::ipip:
      write_ipip(at, tunnel);
      return;
  }
}

}  // namespace holdfast

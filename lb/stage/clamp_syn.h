// SPDX-License-Identifier: Apache-2.0
// The MSS clamp of a service, for encapsulate(). A function of its own, so that packets that are no
// SYN pay for one comparison. Worker only.
#pragma once

#include <rte_mbuf.h>

#include "lib/model/service.h"
#include "lib/net/parse.h"

namespace holdfast {

/// Lowers the MSS that the client tells the backend to Service::mss_clamp, if it has one and the
/// packet may be changed. `packet` has a TCP header with SYN set, and is still as it was received.
void clamp_syn(rte_mbuf& mbuf, const ParsedPacket& packet, const Service& service) noexcept;

}  // namespace holdfast

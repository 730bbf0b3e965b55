// SPDX-License-Identifier: Apache-2.0
// A collection of packets of all kinds, toward the services below: where random mutation and
// fuzzing start from, and what benchmarks send.
#pragma once

#include <vector>

#include "tests/dsl/packet.h"
#include "tests/dsl/services.h"

namespace holdfast::dsl {

/// TCP 80 and UDP 443 on one VIP of each family; backends of both families.
[[nodiscard]] std::vector<ServiceSpec> sample_services();

/// Each is good as it is (or goes to the kernel) and has something that others do not have.
[[nodiscard]] std::vector<Packet> sample_packets();

}  // namespace holdfast::dsl

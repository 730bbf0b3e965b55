// SPDX-License-Identifier: Apache-2.0
// What a worker knows about flows: the traffic it forwarded per service and per backend. Owned and
// written by one worker; control reads the counters. (The flow table joins here.)
#pragma once

#include <vector>

#include "lib/base/counter.h"
#include "lib/model/numbers.h"

namespace holdfast {

struct FlowContext {
  struct Traffic {
    Counter packets;
    Counter bytes;  // inner IP bytes
  };

  std::vector<Traffic> services = std::vector<Traffic>(kMaxNumbers);
  std::vector<Traffic> backends = std::vector<Traffic>(kMaxNumbers);

  /// A packet of `bytes` inner IP bytes left toward `backend`.
  void count_forwarded(ServiceNumber service, BackendNumber backend, std::uint32_t bytes) noexcept {
    for (Traffic* traffic : {&services[index_of(service)], &backends[index_of(backend)]}) {
      traffic->packets.add();
      traffic->bytes.add(bytes);
    }
  }
};

}  // namespace holdfast

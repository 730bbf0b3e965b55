// SPDX-License-Identifier: Apache-2.0
#include "lb/flow/flow_context.h"
#include "lb/stage/stages.h"

namespace holdfast {

namespace {

BackendNumber pick_by_slot(const Pool& pool, const FlowHash& hash) {
  if (pool.effective == nullptr || pool.effective->empty()) return kNoBackend;
  const SlotTable& slots = *pool.effective;
  return slots[maglev_slot(hash, static_cast<std::uint32_t>(slots.size()))];
}

}  // namespace

void pick_backend(Burst& burst, const Snapshot& now, FlowContext&, Instant) noexcept {
  burst.for_undecided([&](Burst::Lane lane) {
    const Service* service = now.service(burst.service[lane]);
    const BackendNumber backend =
        service == nullptr ? kNoBackend : pick_by_slot(now.pool(service->pool), burst.hash[lane]);
    burst.backend[lane] = backend;
    if (backend == kNoBackend) burst.drop(lane, DropReason::no_backend);
  });
}

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
#include "lb/flow/flow_counts.h"

#include <sys/mman.h>

#include <stdexcept>

namespace holdfast {

FlowCounters FlowCountRow::read() const {
  return {.packets = packets.read(),
          .bytes = bytes.read(),
          .new_flows = new_flows.read(),
          .active = static_cast<std::int64_t>(active.read()),
          .embryonic = static_cast<std::int64_t>(embryonic.read()),
          .closing = static_cast<std::int64_t>(closing.read())};
}

FlowCounts::FlowCounts() {
  void* const at = ::mmap(nullptr, 2 * kRows * sizeof(FlowCountRow), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED)
    throw std::runtime_error(
        "no address space for the flow counters: raise the limit on virtual "
        "memory (ulimit -v)");
  mapping_ = at;
  // Zeroed pages are rows of counters that stand at zero; constructing the rows would touch them
  // all. Counter is an atomic integer and nothing else, and has no destructor.
  services_ = static_cast<FlowCountRow*>(at);
  backends_ = services_ + kRows;
}

FlowCounts::~FlowCounts() { ::munmap(mapping_, 2 * kRows * sizeof(FlowCountRow)); }

}  // namespace holdfast

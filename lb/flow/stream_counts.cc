// SPDX-License-Identifier: Apache-2.0
#include "lb/flow/stream_counts.h"

#include <sys/mman.h>

#include <stdexcept>

namespace holdfast {
namespace {

constexpr std::size_t kRows = kMaxNumbers + 1;

}  // namespace

StreamCounts::StreamCounts() {
  void* const at = ::mmap(nullptr, kRows * sizeof(Row), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED)
    throw std::runtime_error(
        "no address space for the durations of streams: raise the limit on virtual "
        "memory (ulimit -v)");
  // A page that is first used while packets come must not be one of 2 MiB, to be zeroed. Where the
  // kernel has none of these, it refuses, and all is well.
  static_cast<void>(::madvise(at, kRows * sizeof(Row), MADV_NOHUGEPAGE));
  // As in FlowCounts: zeroed pages are counters that stand at zero.
  services_ = static_cast<Row*>(at);
}

StreamCounts::~StreamCounts() { ::munmap(services_, kRows * sizeof(Row)); }

void StreamCounts::record(const FlowEntry& entry, bool expired) {
  Row& row = services_[index_of(entry.service())];
  if (entry.adopted()) {
    row.excluded.add();
    return;
  }
  // Who has said that it ends has ended, in whatever way its entry leaves. Who fell silent has
  // ended with its last packet, once its time-out is over; before that it may go on without us.
  const FlowLife life = entry.life();
  const bool ended = expired || life.closing();
  Bins& bins = ended ? row.ended : row.censored;
  bins[duration_bin(duration_of(entry, now_))].add();
  if (life.state == FlowState::closing_rst) row.reset.add();
}

StreamRecords StreamCounts::read(ServiceNumber service) const {
  const Row& row = services_[index_of(service)];
  StreamRecords records{.reset = row.reset.read(), .excluded = row.excluded.read()};
  for (std::size_t bin = 0; bin < kDurationBins; ++bin) {
    records.lifetimes.ended[bin] = row.ended[bin].read();
    records.lifetimes.censored[bin] = row.censored[bin].read();
  }
  return records;
}

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
#include "lb/snapshot_slot.h"

#include <rte_rcu_qsbr.h>

#include <cassert>
#include <cstdlib>
#include <new>
#include <utility>

namespace holdfast {

void SnapshotSlot::FreeAligned::operator()(rte_rcu_qsbr* variable) const { std::free(variable); }

SnapshotSlot::SnapshotSlot(unsigned readers) {
  // The variable is cache-line aligned; aligned_alloc wants a multiple of the alignment.
  const std::size_t line = alignof(rte_rcu_qsbr);
  const std::size_t size = (rte_rcu_qsbr_get_memsize(readers) + line - 1) / line * line;
  rcu_.reset(static_cast<rte_rcu_qsbr*>(std::aligned_alloc(line, size)));
  if (rcu_ == nullptr || rte_rcu_qsbr_init(rcu_.get(), readers) != 0) throw std::bad_alloc{};
}

SnapshotSlot::~SnapshotSlot() { delete current_.load(std::memory_order_relaxed); }

void SnapshotSlot::publish(std::unique_ptr<const Snapshot> next) {
  assert(next != nullptr);
  // Sequentially consistent: a reader that comes online announces itself before it loads the
  // pointer, so either it loads the new one or reclaim() sees that it is online.
  const Snapshot* previous = current_.exchange(next.release(), std::memory_order_seq_cst);
  if (previous != nullptr)
    old_.push_back({rte_rcu_qsbr_start(rcu_.get()), std::unique_ptr<const Snapshot>(previous)});
  reclaim();
}

void SnapshotSlot::reclaim() {
  while (!old_.empty() && rte_rcu_qsbr_check(rcu_.get(), old_.front().token, false) == 1)
    old_.pop_front();
}

SnapshotSlot::Reader SnapshotSlot::reader(unsigned index) {
  // Registering twice is harmless; a registered thread is offline until it says otherwise.
  [[maybe_unused]] const int result = rte_rcu_qsbr_thread_register(rcu_.get(), index);
  assert(result == 0);
  return {rcu_.get(), &current_, index};
}

void SnapshotSlot::Reader::online() { rte_rcu_qsbr_thread_online(rcu_, index_); }
void SnapshotSlot::Reader::offline() { rte_rcu_qsbr_thread_offline(rcu_, index_); }
void SnapshotSlot::Reader::quiescent() { rte_rcu_qsbr_quiescent(rcu_, index_); }

}  // namespace holdfast

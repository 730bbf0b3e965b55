// SPDX-License-Identifier: Apache-2.0
// Where a stage gets an empty packet buffer when one packet becomes several. The daemon's are of
// the ports' mempool, the tests' of the heap. One object a worker; only its worker calls it.
#pragma once

#include <rte_mbuf.h>

namespace holdfast {

class BufferSource {
 public:
  virtual ~BufferSource() = default;
  /// One segment without data, with the usual headroom (RTE_PKTMBUF_HEADROOM); null: none is left.
  [[nodiscard]] virtual rte_mbuf* allocate() = 0;
};

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// TCP options of strangers under an MSS clamp: nothing is read or written beyond them, nothing but
// one MSS and the checksum changes, the MSS only downward, and the sum stays what it was. The first
// two bytes are the clamp.
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "lib/net/checksum.h"
#include "lib/net/headers.h"
#include "lib/net/mss.h"

using namespace holdfast;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const auto most = static_cast<std::uint16_t>(data[0] << 8 | data[1]);
  // Memory of just this size, so that a byte beyond it is found.
  const std::vector<std::uint8_t> before(data + 2, data + size);
  std::vector<std::uint8_t> after = before;
  const bool changed = clamp_mss(after, most);
  require(changed == (after != before));
  if (!changed) return 0;
  std::size_t first = after.size();
  std::size_t last = 0;
  for (std::size_t i = 0; i < after.size(); ++i) {
    const bool in_checksum = i == 16 || i == 17;
    if (after[i] == before[i] || in_checksum) continue;
    first = std::min(first, i);
    last = i;
  }
  require(first >= sizeof(TcpHeader) && last < 60 && last - first <= 1);
  // A difference of zero, of which ones' complement has two: all zeros are no sum of a packet.
  const auto sum = checksum_fold(checksum_add(before));
  require(checksum_fold(checksum_add(after)) == sum || sum == 0 || sum == 0xffff);
  return 0;
}

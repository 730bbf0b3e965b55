// SPDX-License-Identifier: Apache-2.0
#include "bench/groups.h"
namespace holdfast::bench {
void run_pipeline(Report& report, const Options& options) {
  (void)report;
  (void)options;
}
}  // namespace holdfast::bench

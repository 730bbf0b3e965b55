// SPDX-License-Identifier: Apache-2.0
// The list of all kinds of checks: a new one is a line here, a case, and a file beside this one.
#include "ctrl/check/check.h"
#include "ctrl/check/tcp_check.h"

namespace holdfast {

const CheckType& check_type(CheckKind kind) {
  static const CheckType kTcp{.kind = CheckKind::tcp, .name = "tcp", .start = &start_tcp_check};
  switch (kind) {
    case CheckKind::tcp:
      return kTcp;
  }
  return kTcp;
}

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// Where a command's answer goes: any number of events, then exactly one result or error.
// Implemented by the server's connections (and by tests); used from the control thread only.
#pragma once

#include <sys/types.h>

#include "lib/base/result.h"
#include "lib/protocol/json_fwd.h"

namespace holdfast {

/// Who sits at the other end of the socket, as the kernel says.
struct Peer {
  uid_t uid = 0;
  pid_t pid = 0;
};

class Reply {
 public:
  virtual ~Reply() = default;
  /// Ignored once the client has left.
  virtual void event(const Json& event) = 0;
  /// Requires: neither result() nor error() was called before.
  virtual void result(const Json& result) = 0;
  virtual void error(const Error& error) = 0;
  /// The client has left: what it started goes on, but nobody waits for it.
  [[nodiscard]] virtual bool gone() const = 0;
  [[nodiscard]] virtual const Peer& peer() const = 0;
};

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// A walk through all flow tables for one client, in slices at the helper thread: other work for
// that thread and the loop comes between them, and workers are never held. Control thread only.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "ctrl/server/reply.h"
#include "lib/model/flow_scan.h"

namespace holdfast {

class ControlPlane;

struct FlowWalk {
  FlowPosition from{};
  /// Called in the helper thread, for one entry after the other. False: enough. Must not throw, nor
  /// look at anything that is not its own.
  FlowVisitor visit;
  /// Called in the control thread at the end, and not at all if the client left before. `next`: the
  /// place behind the entry of which `visit` said that it is enough; nullopt: all was seen.
  std::function<void(std::optional<FlowPosition> next)> done;
};

/// Says at once that the daemon is at it, and answers nothing else: that is for `done`.
void walk_flows(ControlPlane& control, FlowWalk walk, std::shared_ptr<Reply> reply);

}  // namespace holdfast

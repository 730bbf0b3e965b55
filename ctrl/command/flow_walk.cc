// SPDX-License-Identifier: Apache-2.0
#include "ctrl/command/flow_walk.h"

#include <utility>

#include "ctrl/control_plane.h"
#include "lib/protocol/json.h"

namespace holdfast {
namespace {

/// A MiB of entries: one or two milliseconds, for which a snapshot may have to wait.
constexpr std::uint64_t kSlice = 64 * 1024;

class Walk : public std::enable_shared_from_this<Walk> {
 public:
  Walk(ControlPlane& control, FlowWalk walk, std::shared_ptr<Reply> reply)
      : control_(control), reply_(std::move(reply)), walk_(std::move(walk)), next_(walk_.from) {}

  void go_on() {
    if (reply_->gone()) return;
    if (enough_ || !next_) return walk_.done(next_);
    // The helper thread holds no share in this object, which must end in the control thread.
    control_.run_slice_aside([this] { read_slice(); },
                             [self = shared_from_this()] { self->go_on(); });
  }

 private:
  /// Helper thread; the control thread looks at nothing here until it has returned.
  void read_slice() {
    next_ = control_.flows().read_flows(*next_, kSlice, [this](const FlowRow& row) {
      enough_ = !walk_.visit(row);
      return !enough_;
    });
  }

  ControlPlane& control_;
  std::shared_ptr<Reply> reply_;
  FlowWalk walk_;
  std::optional<FlowPosition> next_;
  bool enough_ = false;
};

}  // namespace

void walk_flows(ControlPlane& control, FlowWalk walk, std::shared_ptr<Reply> reply) {
  reply->event(Json::object());
  std::make_shared<Walk>(control, std::move(walk), std::move(reply))->go_on();
}

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// Follows a drain for a client that waits: tells about each second how many flows are left, and
// ends when none is. It only looks: when the client leaves, the drain goes on. Control thread only.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ctrl/control_plane.h"
#include "ctrl/server/reply.h"
#include "lib/protocol/json.h"

namespace holdfast {

struct FollowedBackend {
  MembershipKey key;
  BackendNumber number = kNoBackend;
  std::string label;  // "web/b1"
};

struct FollowRequest {
  std::vector<FollowedBackend> backends{};
  std::optional<std::chrono::milliseconds> wait_for{};  // give up waiting after this
};

/// The flows left on each of `backends`, as JSON, and their sum.
struct FlowsLeft {
  Json backends = Json::array();
  std::uint64_t active = 0;
};
[[nodiscard]] FlowsLeft flows_left(const ControlPlane& control,
                                   const std::vector<FollowedBackend>& backends);

/// Call when the drain has reached the workers. Answers `reply` in the end.
void follow_drain(ControlPlane& control, FollowRequest request, std::shared_ptr<Reply> reply);

}  // namespace holdfast

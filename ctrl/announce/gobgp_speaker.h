// SPDX-License-Identifier: Apache-2.0
// The BGP speaker that is a gobgpd somewhere, driven over gRPC. No name of gRPC or of gobgpd's API
// leaves gobgp_speaker.cc. The control thread makes it, calls it and destroys it.
#pragma once

#include <memory>
#include <string>

#include "ctrl/announce/speaker.h"
#include "ctrl/loop/loop.h"

namespace holdfast {

/// `target` in gRPC's notation: "unix:/run/gobgpd.sock" or "127.0.0.1:50051". Connects by itself,
/// now and whenever the connection is lost; nothing here waits. `loop` must outlive the speaker.
/// A process that has one must not fork without exec.
[[nodiscard]] std::unique_ptr<BgpSpeaker> make_gobgp_speaker(Loop& loop, const std::string& target);

}  // namespace holdfast

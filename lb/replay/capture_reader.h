// SPDX-License-Identifier: Apache-2.0
// Reads a capture file, pcap or pcapng, packet by packet as Ethernet frames. One owner; blocks as
// the file does.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lb/replay/link_layer.h"
#include "lib/base/result.h"

struct pcap;

namespace holdfast {

struct CapturedFrame {
  std::chrono::nanoseconds time{};        // since 1970; never before, and not beyond 2255
  std::span<const std::uint8_t> bytes{};  // as far as they were captured; valid until next()
};

class CaptureReader {
 public:
  /// `ends`: the addresses of frames from links that have none. Errors have the path as `where`.
  [[nodiscard]] static Result<CaptureReader> open(const std::string& path, const FrameEnds& ends);

  /// The next packet; empty at the end. After an error there is nothing more to read.
  [[nodiscard]] Result<std::optional<CapturedFrame>> next();

 private:
  struct Close {
    void operator()(pcap* handle) const;
  };
  using Handle = std::unique_ptr<pcap, Close>;

  CaptureReader(std::string path, Handle handle, LinkType type, const FrameEnds& ends)
      : path_(std::move(path)), handle_(std::move(handle)), type_(type), ends_(ends) {}

  std::string path_;
  Handle handle_;
  LinkType type_;
  FrameEnds ends_;
  std::uint64_t read_ = 0;  // packets
  std::vector<std::uint8_t> frame_{};
};

}  // namespace holdfast

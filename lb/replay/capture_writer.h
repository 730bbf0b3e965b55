// SPDX-License-Identifier: Apache-2.0
// Writes a pcap file of Ethernet frames. One owner; blocks as the file does.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "lib/base/result.h"

struct pcap;
struct pcap_dumper;

namespace holdfast {

class CaptureWriter {
 public:
  /// Replaces what is at `path`, unless that is the file at `input`, which is still to be read.
  [[nodiscard]] static Result<CaptureWriter> create(const std::string& path,
                                                    const std::string& input);

  /// `time` is since 1970. A failure is told by finish().
  void write(std::chrono::nanoseconds time, std::span<const std::uint8_t> frame);
  /// The number that the next frame gets.
  [[nodiscard]] std::uint64_t written() const { return written_; }

  /// All is in the file, or why it is not. Call it once, last.
  [[nodiscard]] Result<void> finish();

 private:
  struct Close {
    void operator()(pcap* handle) const;
    void operator()(pcap_dumper* dumper) const;
  };

  CaptureWriter(std::string path, pcap* handle, pcap_dumper* dumper)
      : path_(std::move(path)), handle_(handle), dumper_(dumper) {}

  std::string path_;
  std::unique_ptr<pcap, Close> handle_;
  std::unique_ptr<pcap_dumper, Close> dumper_;
  std::uint64_t written_ = 0;
};

}  // namespace holdfast

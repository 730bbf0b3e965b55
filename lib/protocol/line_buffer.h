// SPDX-License-Identifier: Apache-2.0
// Cuts a byte stream into lines of bounded length, however the bytes arrive. Pure; owned by one
// connection, used by its thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast {

class LineBuffer {
 public:
  /// `max_line`: bytes of a line without its line end.
  explicit LineBuffer(std::size_t max_line) : max_line_(max_line) {}

  /// Takes bytes as they came. After too_long() became true they are ignored.
  void append(std::string_view bytes);
  /// The next whole line without "\n" (a "\r" before it is cut too), or nothing yet.
  [[nodiscard]] std::optional<std::string> next();
  /// A line grew beyond the limit: the stream has no known line start any more, close it. Lines
  /// that were whole before it are still given by next().
  [[nodiscard]] bool too_long() const { return too_long_; }
  /// Bytes of a line that has not ended yet.
  [[nodiscard]] std::size_t pending() const { return buffer_.size() - start_; }

 private:
  std::size_t max_line_;
  std::string buffer_;
  std::size_t start_ = 0;       // of the first line not yet given
  std::size_t scanned_ = 0;     // no line end in [start_, scanned_)
  std::size_t unfinished_ = 0;  // bytes behind the last line end
  bool too_long_ = false;
};

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
#include "lib/protocol/line_buffer.h"

namespace holdfast {

void LineBuffer::append(std::string_view bytes) {
  if (too_long_) return;
  if (start_ > 0) {  // what was given is forgotten before the buffer grows
    buffer_.erase(0, start_);
    scanned_ -= start_;
    start_ = 0;
  }
  buffer_ += bytes;
  // The last, unfinished line decides; whole lines are judged when they are taken. Only what is new
  // is looked at, so that a line of many pieces takes no longer than its bytes.
  const auto last_end = bytes.rfind('\n');
  unfinished_ =
      last_end == std::string_view::npos ? unfinished_ + bytes.size() : bytes.size() - last_end - 1;
  if (unfinished_ > max_line_ + 1) too_long_ = true;  // + 1: a "\r" may still be cut
}

std::optional<std::string> LineBuffer::next() {
  const auto end = buffer_.find('\n', scanned_);
  if (end == std::string::npos) {
    scanned_ = buffer_.size();
    return std::nullopt;
  }
  auto length = end - start_;
  if (length > 0 && buffer_[end - 1] == '\r') --length;
  if (length > max_line_) {
    too_long_ = true;
    buffer_.clear();
    start_ = scanned_ = 0;
    return std::nullopt;
  }
  std::string line = buffer_.substr(start_, length);
  start_ = scanned_ = end + 1;
  return line;
}

}  // namespace holdfast

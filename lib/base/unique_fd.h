// SPDX-License-Identifier: Apache-2.0
// A file descriptor with an owner: closed once, when its owner ends. Move only; one thread at a
// time.
#pragma once

#include <unistd.h>

#include <utility>

namespace holdfast {

class UniqueFd {
 public:
  UniqueFd() = default;
  /// Takes over `fd`; a negative one means "none".
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~UniqueFd() {
    if (fd_ >= 0) ::close(fd_);
  }

  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool valid() const { return fd_ >= 0; }
  /// Gives the descriptor away: the caller closes it.
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

}  // namespace holdfast

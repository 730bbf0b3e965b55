// SPDX-License-Identifier: Apache-2.0
#include "lb/idle_wait.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <system_error>

namespace holdfast {

IdleWait::IdleWait(const std::vector<int>& descriptors, bool complete)
    : wakeup_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), complete_(complete) {
  if (!wakeup_.valid())
    throw std::system_error(errno, std::generic_category(), "cannot make a worker's wake-up");
  polled_.push_back({.fd = wakeup_.get(), .events = POLLIN, .revents = 0});
  for (const int descriptor : descriptors)
    polled_.push_back({.fd = descriptor, .events = POLLIN, .revents = 0});
}

void IdleWait::sleep(std::chrono::nanoseconds longest) {
  if (!complete_) {
    longest = std::min<std::chrono::nanoseconds>(longest, pause_);
    pause_ = std::min(pause_ * 2, kLongestBlind);
  }
  const timespec limit{.tv_sec = 0, .tv_nsec = longest.count()};
  if (::ppoll(polled_.data(), polled_.size(), &limit, nullptr) <= 0) return;
  if (polled_.front().revents != 0) {
    std::uint64_t count = 0;
    (void)!::read(wakeup_.get(), &count, sizeof(count));
  }
  // A socket whose interface is gone reports an error for ever: sleep without it, or the worker
  // would spin.
  for (std::size_t i = 1; i < polled_.size(); ++i)
    if ((polled_[i].revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) polled_[i].fd = -1;
}

void IdleWait::wake() {
  const std::uint64_t one = 1;
  (void)!::write(wakeup_.get(), &one, sizeof(one));
}

}  // namespace holdfast

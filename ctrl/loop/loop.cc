// SPDX-License-Identifier: Apache-2.0
#include "ctrl/loop/loop.h"
#include "ctrl/log.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include <array>
#include <cerrno>
#include <exception>
#include <system_error>
#include <utility>

namespace holdfast {
namespace {

UniqueFd checked(int fd, const char* what) {
  if (fd < 0) throw std::system_error(errno, std::generic_category(), what);
  return UniqueFd(fd);
}

// Serials of the loop's own descriptors; those of watches start above.
constexpr std::uint64_t kWakeup = 1;
constexpr std::uint64_t kClock = 2;
constexpr std::uint64_t kFirstSerial = 3;

}  // namespace

Loop::Loop()
    : epoll_(checked(epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      wakeup_(checked(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")),
      clock_(checked(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK), "timerfd_create")),
      next_serial_(kFirstSerial) {
  const auto add = [&](int fd, std::uint64_t serial) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = serial << 32 | static_cast<std::uint32_t>(fd);
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
      throw std::system_error(errno, std::generic_category(), "epoll_ctl");
    }
  };
  add(wakeup_.get(), kWakeup);
  add(clock_.get(), kClock);
}

Loop::~Loop() = default;

template <class Work>
void Loop::timed(std::string_view what, Work&& work) {
  const auto start = boot_now();
  try {
    work();
  } catch (const std::exception& fault) {
    log_line(LogLevel::error, fmt::format("{} failed: {}", what, fault.what()));
  }
  const auto took = boot_now() - start;
  if (took > kLongestCallback) {
    ++slow_callbacks_;
    log_line(
        LogLevel::warning,
        fmt::format("the control loop was held for {} ms by: {}",
                    std::chrono::duration_cast<std::chrono::milliseconds>(took).count(), what));
  }
}

void Loop::add_timer(Instant when, Timer timer) {
  const auto id = timer.id;
  timer_index_[id] = timers_.emplace(when, std::move(timer));
}

Loop::TimerId Loop::call_at(Instant when, std::string_view what, Callback callback) {
  const auto id = next_timer_++;
  add_timer(when, {id, what, {}, std::make_shared<Callback>(std::move(callback))});
  return id;
}

Loop::TimerId Loop::call_every(std::chrono::nanoseconds period, std::string_view what,
                               Callback callback) {
  const auto id = next_timer_++;
  add_timer(boot_now() + period,
            {id, what, period, std::make_shared<Callback>(std::move(callback))});
  return id;
}

void Loop::cancel(TimerId id) {
  if (id != 0 && id == running_timer_) cancelled_while_running_ = id;
  const auto it = timer_index_.find(id);
  if (it == timer_index_.end()) return;
  timers_.erase(it->second);
  timer_index_.erase(it);
}

int Loop::watch(int fd, std::uint32_t events, std::string_view what, FdCallback callback) {
  const auto serial = next_serial_++ & 0xffffffffU;
  epoll_event event{};
  event.events = events;
  event.data.u64 = serial << 32 | static_cast<std::uint32_t>(fd);
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return errno;
  watches_[fd] = {serial, what, std::make_shared<FdCallback>(std::move(callback))};
  return 0;
}

void Loop::change(int fd, std::uint32_t events) {
  const auto it = watches_.find(fd);
  if (it == watches_.end()) return;
  epoll_event event{};
  event.events = events;
  event.data.u64 = it->second.serial << 32 | static_cast<std::uint32_t>(fd);
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void Loop::unwatch(int fd) {
  if (watches_.erase(fd) > 0) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

void Loop::post(Callback work) {
  {
    const std::scoped_lock lock(posted_mutex_);
    posted_.push_back(std::move(work));
  }
  const std::uint64_t one = 1;
  // It can only fail when the counter is full: then the loop is about to wake up anyway.
  [[maybe_unused]] const auto written = write(wakeup_.get(), &one, sizeof one);
}

void Loop::stop() {
  stopping_.store(true, std::memory_order_release);
  const int saved_errno = errno;  // a signal handler must leave it as it was
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(wakeup_.get(), &one, sizeof one);
  errno = saved_errno;
}

void Loop::arm_timer() {
  // Zero would disarm the clock, so an overdue timer is set to just after it.
  Instant earliest{};
  if (!timers_.empty()) {
    earliest = std::max(timers_.begin()->first, Instant{1});
  }
  if (earliest == armed_) return;
  armed_ = earliest;
  const auto since = earliest;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since);
  itimerspec spec{};
  spec.it_value.tv_sec = seconds.count();
  spec.it_value.tv_nsec = (since - seconds).count();
  timerfd_settime(clock_.get(), TFD_TIMER_ABSTIME, &spec, nullptr);
}

void Loop::run_timers() {
  // Timers that callbacks add for "now" wait for the next turn, so they cannot starve the rest.
  const auto now = boot_now();
  std::vector<TimerId> due;
  for (auto it = timers_.begin(); it != timers_.end() && it->first <= now; ++it) {
    due.push_back(it->second.id);
  }
  for (const auto id : due) {
    const auto found = timer_index_.find(id);
    if (found == timer_index_.end()) continue;  // cancelled by an earlier callback
    Timer timer = found->second->second;
    timers_.erase(found->second);
    timer_index_.erase(found);
    running_timer_ = id;
    cancelled_while_running_ = 0;
    timed(timer.what, *timer.callback);
    running_timer_ = 0;
    if (timer.period.count() > 0 && cancelled_while_running_ != id) {
      const auto next = boot_now() + timer.period;
      add_timer(next, std::move(timer));
    }
  }
}

void Loop::run_posted() {
  std::vector<Callback> work;
  {
    const std::scoped_lock lock(posted_mutex_);
    work.swap(posted_);
  }
  for (auto& item : work) timed("work from another thread", item);
}

void Loop::run_once(std::chrono::milliseconds longest_wait) {
  arm_timer();
  std::array<epoll_event, 64> events{};
  const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                               static_cast<int>(longest_wait.count()));
  for (int i = 0; i < count; ++i) {
    const auto& event = events[static_cast<std::size_t>(i)];
    const auto fd = static_cast<int>(event.data.u64 & 0xffffffffU);
    const auto serial = event.data.u64 >> 32;
    if (serial == kWakeup || serial == kClock) {
      std::uint64_t ignored = 0;
      [[maybe_unused]] const auto got = read(fd, &ignored, sizeof ignored);
      if (serial == kClock) armed_ = {};
      continue;
    }
    const auto it = watches_.find(fd);
    if (it == watches_.end() || it->second.serial != serial) continue;
    const auto callback = it->second.callback;  // stays alive if it unwatches itself
    timed(it->second.what, [&] { (*callback)(event.events); });
  }
  run_posted();
  run_timers();
}

void Loop::run() {
  using namespace std::chrono_literals;
  while (!stopping_.load(std::memory_order_acquire)) run_once(1000ms);
}

}  // namespace holdfast

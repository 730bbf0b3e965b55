// SPDX-License-Identifier: Apache-2.0
// The control thread's event loop: timers on the boot-time clock, file descriptors, and work that
// other threads hand over. One epoll instance; owned by ControlPlane. All methods are for the
// thread that calls run(), except post() and stop(). A callback must not block: one that holds the
// loop for more than 50 ms is named in the log. One that throws is named too, and the loop goes on:
// trouble in control never stops forwarding.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ctrl/loop/boot_clock.h"
#include "lib/base/unique_fd.h"

namespace holdfast {

class Loop {
 public:
  /// 0 is never the id of a timer.
  using TimerId = std::uint64_t;
  using Callback = std::function<void()>;
  /// Takes the epoll events that came (EPOLLIN, EPOLLOUT, EPOLLERR, EPOLLHUP).
  using FdCallback = std::function<void(std::uint32_t events)>;

  static constexpr std::chrono::milliseconds kLongestCallback{50};

  /// Throws std::system_error when the kernel refuses the descriptors (start-up only).
  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  /// Calls `callback` once at `when`, or at the next turn if that has passed. `what` names it in
  /// the log and must outlive the loop (a literal).
  TimerId call_at(Instant when, std::string_view what, Callback callback);
  TimerId call_after(std::chrono::nanoseconds delay, std::string_view what, Callback callback) {
    return call_at(boot_now() + delay, what, std::move(callback));
  }
  /// Calls `callback` each `period` (the first time after one) until cancelled. A turn that was
  /// missed is not made up for.
  TimerId call_every(std::chrono::nanoseconds period, std::string_view what, Callback callback);
  /// An id that fired already, or 0, is ignored.
  void cancel(TimerId id);

  /// Watches `fd` (level triggered). A callback may unwatch any fd, its own too. Returns 0, or the
  /// errno with which the kernel refused (it has a limit of watches).
  /// Requires: `fd` is open and not watched yet.
  int watch(int fd, std::uint32_t events, std::string_view what, FdCallback callback);
  void change(int fd, std::uint32_t events);
  /// Call before closing `fd`.
  void unwatch(int fd);

  /// Runs `work` in the loop's thread, in the order of the calls. Any thread.
  void post(Callback work);

  /// Until stop(). Timers, descriptors and posted work take turns.
  void run();
  /// One turn: waits at most `longest_wait` for something to do. For tests and tools.
  void run_once(std::chrono::milliseconds longest_wait);
  /// Ends run() after the present callback. Any thread; safe in a signal handler.
  void stop();

  /// How often a callback held the loop for longer than kLongestCallback.
  [[nodiscard]] std::uint64_t slow_callbacks() const { return slow_callbacks_; }

 private:
  struct Timer {
    TimerId id;
    std::string_view what;
    Instant period;  // 0: once
    std::shared_ptr<Callback> callback;
  };
  struct Watch {
    std::uint64_t serial;  // tells a reused descriptor number from the one an old event is for
    std::string_view what;
    std::shared_ptr<FdCallback> callback;
  };

  void add_timer(Instant when, Timer timer);
  void arm_timer();
  void run_timers();
  void run_posted();
  template <class Work>
  void timed(std::string_view what, Work&& work);

  UniqueFd epoll_;
  UniqueFd wakeup_;  // eventfd: post() and stop() write, the loop reads
  UniqueFd clock_;   // timerfd on CLOCK_BOOTTIME, set to the earliest timer
  std::multimap<Instant, Timer> timers_;
  std::unordered_map<TimerId, std::multimap<Instant, Timer>::iterator> timer_index_;
  Instant armed_{};  // what clock_ is set to; 0: not set
  TimerId next_timer_ = 1;
  TimerId cancelled_while_running_ = 0;
  TimerId running_timer_ = 0;
  std::unordered_map<int, Watch> watches_;
  std::uint64_t next_serial_ = 1;
  std::uint64_t slow_callbacks_ = 0;

  std::mutex posted_mutex_;  // guards posted_: any thread appends, the loop takes all
  std::vector<Callback> posted_;
  std::atomic<bool> stopping_{false};
};

}  // namespace holdfast

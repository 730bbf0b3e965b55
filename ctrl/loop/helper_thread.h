// SPDX-License-Identifier: Apache-2.0
// The one thread for what may take long and must not hold the control loop: Maglev tables now,
// files and names later. Jobs run one after the other. Owned by ControlPlane; run() is for the
// control thread.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <queue>
#include <thread>

namespace holdfast {

class HelperThread {
 public:
  using Job = std::function<void()>;

  HelperThread();
  /// Lets the running job end and forgets those that wait.
  ~HelperThread();
  HelperThread(const HelperThread&) = delete;
  HelperThread& operator=(const HelperThread&) = delete;

  /// A job hands its result over by Loop::post(), and must not throw.
  void run(Job job);

 private:
  void work();

  std::mutex mutex_;  // guards jobs_ and ending_
  std::condition_variable wakeup_;
  std::queue<Job> jobs_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
#include "ctrl/loop/helper_thread.h"

#include <pthread.h>

#include <csignal>
#include <utility>

namespace holdfast {

HelperThread::HelperThread() {
  // Signals are for the threads that main chose; a new thread starts with its maker's mask.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  thread_ = std::thread([this] { work(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(thread_.native_handle(), "holdfast-help");
}

HelperThread::~HelperThread() {
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
  }
  wakeup_.notify_one();
  thread_.join();
}

void HelperThread::run(Job job) {
  {
    const std::scoped_lock lock(mutex_);
    jobs_.push(std::move(job));
  }
  wakeup_.notify_one();
}

void HelperThread::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wakeup_.wait(lock, [this] { return ending_ || !jobs_.empty(); });
    if (ending_) return;
    Job job = std::move(jobs_.front());
    jobs_.pop();
    lock.unlock();
    job();
    lock.lock();
  }
}

}  // namespace holdfast

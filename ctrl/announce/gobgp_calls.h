// SPDX-License-Identifier: Apache-2.0
// Calls under way over gRPC's callback interface. A call is started by the control thread and ends
// on one of gRPC's threads, which only posts what came to the loop: the `done` functions run on the
// control thread. Each call object deletes itself when it has ended. For gobgp_speaker.cc alone.
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/client_callback.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "ctrl/loop/loop.h"

namespace holdfast::gobgp {

/// Which calls are under way. Owned by the speaker; the control thread makes and stops it.
class Calls {
 public:
  using Context = std::shared_ptr<grpc::ClientContext>;

  explicit Calls(Loop& loop) : loop_(loop) {}

  [[nodiscard]] Context begin() {
    auto context = std::make_shared<grpc::ClientContext>();
    const std::lock_guard lock(mutex_);
    contexts_.insert(context);
    return context;
  }

  /// Any thread; the last that `call` does: it is deleted. Takes its share of the context.
  template <class Call>
  void end(Call* call, Context context) {
    delete call;
    const std::lock_guard lock(mutex_);
    contexts_.erase(context);
    context.reset();
    // Under the lock: once it is released, stop() may return and this object be gone.
    if (contexts_.empty()) ended_.notify_all();
  }

  /// Any thread: has `work` run by the loop, unless stop() was called before its turn came.
  void post(Loop::Callback work) {
    loop_.post([alive = is_alive_, work = std::move(work)] {
      if (!alive.expired()) work();
    });
  }

  /// Cancels all calls and returns when each has ended. No posted work runs from now on.
  void stop() {
    alive_.reset();
    std::unique_lock lock(mutex_);
    // A cancelled call may end within TryCancel(): not under the lock, and not in the set.
    std::vector<Context> cancelled(contexts_.begin(), contexts_.end());
    lock.unlock();
    for (const Context& context : cancelled) context->TryCancel();
    lock.lock();
    ended_.wait(lock, [this] { return contexts_.empty(); });
  }

 private:
  Loop& loop_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // control thread
  const std::weak_ptr<bool> is_alive_ = alive_;                 // any thread copies it
  std::mutex mutex_;                                            // guards contexts_
  std::condition_variable ended_;
  std::set<Context> contexts_;
};

inline void set_deadline(grpc::ClientContext& context, std::chrono::milliseconds deadline) {
  context.set_deadline(std::chrono::system_clock::now() + deadline);
}

/// One question, one answer.
template <class Request, class Response>
class UnaryCall final : public grpc::ClientUnaryReactor {
 public:
  using Done = std::function<void(const grpc::Status&, const Response&)>;

  /// `method(context, request, response, reactor)` hands the call to the stub.
  template <class Method>
  static void start(Calls& calls, std::chrono::milliseconds deadline, Request request,
                    Method method, Done done) {
    auto* call = new UnaryCall(calls, std::move(request), std::move(done));
    set_deadline(*call->context_, deadline);
    method(call->context_.get(), &call->request_, &call->response_, call);
    call->StartCall();
  }

 private:
  UnaryCall(Calls& calls, Request request, Done done)
      : calls_(calls),
        context_(calls.begin()),
        request_(std::move(request)),
        done_(std::move(done)) {}

  void OnDone(const grpc::Status& status) override {
    calls_.post([done = std::move(done_), status, response = std::move(response_)] {
      done(status, response);
    });
    calls_.end(this, std::move(context_));
  }

  Calls& calls_;
  Calls::Context context_;
  Request request_;
  Response response_;
  Done done_;
};

/// One question, a list of answers. Who sends more than we could have asked for is cut off.
template <class Request, class Response>
class ListCall final : public grpc::ClientReadReactor<Response> {
 public:
  struct Answer {
    grpc::Status status;
    bool too_much = false;
    std::vector<Response> items{};
  };
  using Done = std::function<void(const Answer&)>;

  /// `method(context, request, reactor)` hands the call to the stub.
  template <class Method>
  static void start(Calls& calls, std::chrono::milliseconds deadline, std::size_t most_items,
                    Request request, Method method, Done done) {
    auto* call = new ListCall(calls, most_items, std::move(request), std::move(done));
    set_deadline(*call->context_, deadline);
    method(call->context_.get(), &call->request_, call);
    call->StartRead(&call->item_);
    call->StartCall();
  }

 private:
  static constexpr std::size_t kMostBytes = std::size_t{16} << 20;

  ListCall(Calls& calls, std::size_t most_items, Request request, Done done)
      : calls_(calls),
        context_(calls.begin()),
        request_(std::move(request)),
        most_items_(most_items),
        done_(std::move(done)) {}

  void OnReadDone(bool ok) override {
    if (!ok) return;
    bytes_ += item_.ByteSizeLong();
    if (answer_->items.size() >= most_items_ || bytes_ > kMostBytes) {
      answer_->too_much = true;
      context_->TryCancel();
      return;
    }
    answer_->items.push_back(std::move(item_));
    this->StartRead(&item_);
  }

  void OnDone(const grpc::Status& status) override {
    answer_->status = status;
    calls_.post([done = std::move(done_), answer = std::move(answer_)] { done(*answer); });
    calls_.end(this, std::move(context_));
  }

  Calls& calls_;
  Calls::Context context_;
  Request request_;
  Response item_;
  std::shared_ptr<Answer> answer_ = std::make_shared<Answer>();
  std::size_t most_items_;
  std::size_t bytes_ = 0;
  Done done_;
};

}  // namespace holdfast::gobgp

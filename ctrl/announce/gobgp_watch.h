// SPDX-License-Identifier: Apache-2.0
// The call that brings news of gobgpd's peers, as long as it lasts. Like the calls of
// gobgp_calls.h; for gobgp_speaker.cc alone.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include "ctrl/announce/gobgp_calls.h"
#include "gobgp.grpc.pb.h"

namespace holdfast::gobgp {

/// The stream of news; like the calls of gobgp_calls.h. What it tells runs on the control thread.
class WatchCall final : public grpc::ClientReadReactor<apipb::WatchEventResponse> {
 public:
  struct Listener {
    std::function<void()> began;
    std::function<void()> changed;
    std::function<void(const grpc::Status&)> ended;
  };

  static Calls::Context start(Calls& calls, apipb::GobgpApi::Stub& stub, Listener listener) {
    auto* call = new WatchCall(calls, std::move(listener));
    const Calls::Context context = call->context_;
    // No deadline, and it waits inside gRPC until a connection is there.
    context->set_wait_for_ready(true);
    stub.async()->WatchEvent(context.get(), &call->request_, call);
    call->StartRead(&call->event_);
    call->StartCall();
    return context;
  }

 private:
  WatchCall(Calls& calls, Listener listener)
      : calls_(calls), context_(calls.begin()), listener_(std::move(listener)) {
    request_.mutable_peer();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    if (!std::exchange(began_, true)) calls_.post(listener_.began);
    // However many come before the control thread has its turn, they are one piece of news.
    if (event_.peer().type() == apipb::WatchEventResponse::PeerEvent::STATE &&
        !told_->exchange(true)) {
      calls_.post([told = told_, changed = listener_.changed] {
        told->store(false);
        changed();
      });
    }
    StartRead(&event_);
  }

  void OnDone(const grpc::Status& status) override {
    calls_.post([ended = listener_.ended, status] { ended(status); });
    calls_.end(this, std::move(context_));
  }

  Calls& calls_;
  Calls::Context context_;
  apipb::WatchEventRequest request_;
  apipb::WatchEventResponse event_;
  Listener listener_;
  bool began_ = false;
  std::shared_ptr<std::atomic<bool>> told_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace holdfast::gobgp

// SPDX-License-Identifier: Apache-2.0
// A server of gobgpd's API that does what a test wants, as a real one never would. In the test's
// own process, on a Unix socket of a temporary folder.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "gobgp.grpc.pb.h"

namespace holdfast {

class FakeGobgpd final : public apipb::GobgpApi::Service {
 public:
  FakeGobgpd() : folder_(make_folder()) {}
  ~FakeGobgpd() override {
    stop();
    std::filesystem::remove_all(folder_);
  }

  [[nodiscard]] std::string target() const { return "unix:" + socket(); }
  [[nodiscard]] std::string socket() const { return folder_ + "/api"; }

  void start() {
    stopping = false;
    grpc::ServerBuilder builder;
    builder.AddListeningPort(target(), grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  void stop() {
    stopping = true;
    if (server_) server_->Shutdown(std::chrono::system_clock::now());
    server_.reset();
    std::filesystem::remove(socket());
  }

  // What it does. Set before start().
  bool hangs = false;     // answers nothing until stop()
  std::string refusal{};  // the text of the error with which it answers everything
  std::function<bool(apipb::ListPathResponse&)> next_path{};     // false: the list ends
  std::function<bool(apipb::WatchEventResponse&)> next_event{};  // false: it waits for stop()

  std::atomic<bool> stopping{false};
  std::atomic<int> watches{0};
  std::atomic<int> lists{0};
  std::atomic<int> events{0};

 private:
  [[nodiscard]] static std::string make_folder() {
    std::string path = std::filesystem::temp_directory_path() / "holdfast-gobgp-XXXXXX";
    if (mkdtemp(path.data()) == nullptr) throw std::runtime_error("no temporary folder");
    return path;
  }

  void wait_for_end(const grpc::ServerContext& context) const {
    while (!stopping && !context.IsCancelled())
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  grpc::Status answer(const grpc::ServerContext& context) const {
    if (hangs) wait_for_end(context);
    if (!refusal.empty()) return {grpc::StatusCode::UNKNOWN, refusal};
    return grpc::Status::OK;
  }

  grpc::Status GetBgp(grpc::ServerContext* context, const apipb::GetBgpRequest*,
                      apipb::GetBgpResponse* response) override {
    response->mutable_global()->set_asn(64512);
    response->mutable_global()->set_router_id("192.0.2.1\n");
    return answer(*context);
  }
  grpc::Status AddPath(grpc::ServerContext* context, const apipb::AddPathRequest*,
                       apipb::AddPathResponse*) override {
    return answer(*context);
  }
  grpc::Status DeletePath(grpc::ServerContext* context, const apipb::DeletePathRequest*,
                          google::protobuf::Empty*) override {
    return answer(*context);
  }
  grpc::Status ListPath(grpc::ServerContext* context, const apipb::ListPathRequest*,
                        grpc::ServerWriter<apipb::ListPathResponse>* writer) override {
    ++lists;
    apipb::ListPathResponse response;
    while (next_path && !context->IsCancelled() && next_path(response)) {
      if (!writer->Write(response)) break;
    }
    return answer(*context);
  }
  grpc::Status WatchEvent(grpc::ServerContext* context, const apipb::WatchEventRequest*,
                          grpc::ServerWriter<apipb::WatchEventResponse>* writer) override {
    ++watches;
    if (!refusal.empty()) return answer(*context);
    apipb::WatchEventResponse event;
    while (next_event && !context->IsCancelled() && next_event(event)) {
      ++events;
      if (!writer->Write(event)) break;
    }
    wait_for_end(*context);
    return grpc::Status::OK;
  }

  const std::string folder_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace holdfast

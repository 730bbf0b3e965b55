// SPDX-License-Identifier: Apache-2.0
#include "ctrl/announce/gobgp_speaker.h"

#include <fmt/format.h>
#include <grpc/support/log.h>

#include <algorithm>
#include <bitset>
#include <cstdlib>

#include "ctrl/announce/gobgp_answers.h"
#include "ctrl/announce/gobgp_calls.h"
#include "ctrl/announce/gobgp_requests.h"
#include "ctrl/announce/gobgp_watch.h"
#include "ctrl/log.h"
#include "gobgp.grpc.pb.h"
#include "lib/base/printable.h"

namespace holdfast {
namespace {

using std::chrono::milliseconds;

// A gobgpd that hangs keeps its connection: only these tell.
constexpr milliseconds kIdentifyDeadline{500};
constexpr milliseconds kCallDeadline{1000};
// Between the end of a watch and the next try; doubled each time a try fails at once.
constexpr milliseconds kFirstPause{100};
constexpr milliseconds kLongestPause{1000};
// So many identify() in a row without an answer make us try a new connection.
constexpr int kDeadConnection = 3;
constexpr std::size_t kMostPeers = 4096;
constexpr int kMostMessageBytes = 1 << 20;

[[nodiscard]] std::shared_ptr<grpc::Channel> open_channel(const std::string& target) {
  grpc::ChannelArguments arguments;
  // A gobgpd that comes back is found within half a second. The minimum is the connection's
  // time-out as well: below two seconds a slow start would be taken for a failure.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 2000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  // No keepalive pings: gobgpd ends connections that send them (too_many_pings).
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  arguments.SetInt(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, kMostMessageBytes);
  // Otherwise a new channel gets the old one's connection, dead or not.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
}

/// Both write to standard error in formats of their own, as often as gobgpd makes them; what
/// matters comes with a call's status.
void silence_libraries() {
  if (std::getenv("GRPC_VERBOSITY") == nullptr) gpr_set_log_function([](gpr_log_func_args*) {});
  gobgp::silence_protobuf();
}

class GobgpSpeaker final : public BgpSpeaker {
 public:
  GobgpSpeaker(Loop& loop, std::string target)
      : loop_(loop), target_(std::move(target)), calls_(loop) {
    keep_callback_threads();
    connect();
  }

  ~GobgpSpeaker() override {
    loop_.cancel(watch_timer_);
    calls_.stop();
  }

  void identify(Answer<BgpIdentity> answer) override {
    unary<apipb::GetBgpRequest, apipb::GetBgpResponse>(
        kIdentifyDeadline, {}, [this](auto... arguments) { stub_->async()->GetBgp(arguments...); },
        [this, answer = std::move(answer)](const grpc::Status& status, const auto& response) {
          count_silence(status);
          if (status.ok()) silent_stub_.reset();
          if (!status.ok()) return answer(tl::unexpected(error_of(status, kIdentifyDeadline)));
          answer(gobgp::read_identity(response));
        });
  }

  void list_peers(Answer<std::vector<BgpPeer>> answer) override {
    list<apipb::ListPeerRequest, apipb::ListPeerResponse>(
        kMostPeers, {}, [this](auto... arguments) { stub_->async()->ListPeer(arguments...); },
        [this](const apipb::ListPeerResponse& item, std::vector<BgpPeer>& result) {
          if (auto peer = gobgp::read_peer(item.peer(), leave_)) result.push_back(*peer);
        },
        std::move(answer));
  }

  void add(const Announcement& announcement, std::uint32_t own_as, Answer<void> answer) override {
    own_as_ = own_as;
    auto request = gobgp::add_request(announcement, own_as);
    if (!request) return refuse(request.error(), std::move(answer));
    action<apipb::AddPathRequest, apipb::AddPathResponse>(
        *std::move(request), [this](auto... arguments) { stub_->async()->AddPath(arguments...); },
        std::move(answer));
  }

  void remove(const IpAddress& vip, Answer<void> answer) override {
    auto request = gobgp::delete_request(vip);
    if (!request) return refuse(request.error(), std::move(answer));
    if (silent_stub_)
      action<apipb::DeletePathRequest, google::protobuf::Empty>(
          *request, [this](auto... arguments) { silent_stub_->async()->DeletePath(arguments...); },
          [](const Result<void>&) {});
    action<apipb::DeletePathRequest, google::protobuf::Empty>(
        *std::move(request),
        [this](auto... arguments) { stub_->async()->DeletePath(arguments...); }, std::move(answer));
  }

  void list_rib(Family family, std::vector<IpAddress> vips,
                Answer<std::vector<Announcement>> answer) override {
    auto asked = prepare(family, std::move(vips));
    auto request = gobgp::rib_request(family, asked.vips);
    list_paths<Announcement>(
        std::move(request), std::move(asked),
        [this](const apipb::Destination& item, const gobgp::Asked& about, auto& result) {
          for (Announcement& found : gobgp::read_rib(item, about, leave_))
            result.push_back(std::move(found));
        },
        std::move(answer));
  }

  void list_sent(const IpAddress& peer, Family family, std::vector<IpAddress> vips,
                 Answer<std::vector<IpAddress>> answer) override {
    auto asked = prepare(family, std::move(vips));
    auto request = gobgp::sent_request(peer, family, asked.vips);
    list_paths<IpAddress>(
        std::move(request), std::move(asked),
        [this](const apipb::Destination& item, const gobgp::Asked& about, auto& result) {
          if (const auto vip = gobgp::read_sent(item, about, leave_)) result.push_back(*vip);
        },
        std::move(answer));
  }

  void watch(News news) override {
    news_ = std::move(news);
    start_watch();
  }

 private:
  void connect() { stub_ = apipb::GobgpApi::NewStub(open_channel(target_)); }

  /// gRPC's threads that run callbacks end with the last channel that made a call. Who drops that
  /// one waits for them, a tenth of a second; where it is one of them, with the last call of a
  /// channel that was replaced, it waits for itself and memory is freed twice (seen with 1.51). So
  /// one channel stays, on which a call was made: without credentials none ever leaves here.
  void keep_callback_threads() {
    unary<apipb::GetBgpRequest, apipb::GetBgpResponse>(
        kIdentifyDeadline, {},
        [this](auto... arguments) { nowhere_->async()->GetBgp(arguments...); },
        [](const auto&...) {});
  }

  template <class Request, class Response, class Method>
  void unary(milliseconds deadline, Request request, Method method,
             typename gobgp::UnaryCall<Request, Response>::Done done) {
    gobgp::UnaryCall<Request, Response>::start(calls_, deadline, std::move(request), method,
                                               std::move(done));
  }

  /// A call that is worth nothing but being done.
  template <class Request, class Response, class Method>
  void action(Request request, Method method, Answer<void> answer) {
    unary<Request, Response>(
        kCallDeadline, std::move(request), method,
        [this, answer = std::move(answer)](const grpc::Status& status, const Response&) {
          if (!status.ok()) return answer(tl::unexpected(error_of(status, kCallDeadline)));
          answer({});
        });
  }

  template <class Request, class Response, class Method, class Read, class T>
  void list(std::size_t most_items, Request request, Method method, Read read,
            Answer<std::vector<T>> answer) {
    using Call = gobgp::ListCall<Request, Response>;
    Call::start(
        calls_, kCallDeadline, most_items, std::move(request), method,
        [this, read = std::move(read), answer = std::move(answer),
         most_items](const typename Call::Answer& came) {
          if (came.too_much)
            return answer(fail(fmt::format(
                "gobgpd at {} answered with more than {} items or 16 MiB", target_, most_items)));
          if (!came.status.ok())
            return answer(tl::unexpected(error_of(came.status, kCallDeadline)));
          std::vector<T> result;
          for (const auto& item : came.items) read(item, result);
          answer(std::move(result));
        });
  }

  template <class T, class Read>
  void list_paths(apipb::ListPathRequest request, gobgp::Asked asked, Read read,
                  Answer<std::vector<T>> answer) {
    if (asked.vips.empty()) {  // gobgpd would answer with all that it has
      calls_.post([answer = std::move(answer)] { answer(std::vector<T>{}); });
      return;
    }
    const std::size_t most_items = asked.vips.size();
    list<apipb::ListPathRequest, apipb::ListPathResponse>(
        most_items, std::move(request),
        [this](auto... arguments) { stub_->async()->ListPath(arguments...); },
        [read, asked = std::move(asked)](const apipb::ListPathResponse& item, auto& result) {
          read(item.destination(), asked, result);
        },
        std::move(answer));
  }

  [[nodiscard]] gobgp::Asked prepare(Family family, std::vector<IpAddress> vips) const {
    std::erase_if(vips, [family](const IpAddress& vip) { return vip.family() != family; });
    std::sort(vips.begin(), vips.end());
    vips.erase(std::unique(vips.begin(), vips.end()), vips.end());
    return {.family = family, .vips = std::move(vips), .own_as = own_as_};
  }

  /// Later, like every answer.
  void refuse(Error error, Answer<void> answer) {
    calls_.post(
        [error = std::move(error), answer = std::move(answer)] { answer(tl::unexpected(error)); });
  }

  /// Of a process that hangs the kernel still takes connections. gRPC has no code for that; should
  /// its words change, it is called unreachable instead of hung.
  [[nodiscard]] static bool took_and_said_nothing(std::string_view words) {
    return words.find("before receiving SETTINGS frame") != std::string_view::npos;
  }

  [[nodiscard]] Error error_of(const grpc::Status& status, milliseconds deadline) const {
    const std::string text = printable(status.error_message(), kMaxSentence);
    if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED || took_and_said_nothing(text))
      return {fmt::format("gobgpd at {} did not answer within {} ms", target_, deadline.count()),
              {},
              "deadline"};
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE)
      return {fmt::format("gobgpd at {} can not be reached: {}", target_, text), {}, "unreachable"};
    return {fmt::format("gobgpd at {} refused: {}", target_, text)};
  }

  /// A host that is gone without a word leaves a connection that TCP holds for many minutes, and
  /// its successor would be found as late. The kernel knows the end of a Unix socket at once; there
  /// silence is a process that hangs, and a new connection would not help.
  void count_silence(const grpc::Status& status) {
    const bool silent = status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
    silences_ = silent ? silences_ + 1 : 0;
    if (silences_ < kDeadConnection || target_.starts_with("unix")) return;
    silences_ = 0;
    if (!silent_stub_) silent_stub_ = std::move(stub_);
    connect();
    if (!watch_call_) return;
    replaced_ = true;
    watch_call_->TryCancel();  // its end starts the next one
  }

  void start_watch() {
    watch_timer_ = 0;
    watch_call_ = gobgp::WatchCall::start(
        calls_, *stub_,
        {.began =
             [this] {
               watching_ = true;
               pause_ = kFirstPause;
               if (news_.restarted) news_.restarted();
             },
         .changed =
             [this] {
               if (news_.changed) news_.changed();
             },
         .ended = [this](const grpc::Status& status) { end_watch(status); }});
  }

  void end_watch(const grpc::Status& status) {
    watch_call_.reset();
    watch_timer_ = loop_.call_after(pause_, "gobgpd's news", [this] { start_watch(); });
    pause_ = std::min(2 * pause_, kLongestPause);
    const std::string why = printable(status.error_message(), kMaxSentence);
    const bool by_us = std::exchange(replaced_, false);
    if (std::exchange(watching_, false) && !by_us) {
      if (news_.lost)
        news_.lost({fmt::format("gobgpd at {} is gone: {}", target_, why), {}, "unreachable"});
    } else {
      log_line(LogLevel::debug, fmt::format("gobgpd at {} gives no news: {}", target_, why));
    }
  }

  void leave_out(gobgp::Oddity oddity, const std::string& detail) {
    const auto kind = static_cast<std::size_t>(oddity);
    if (logged_.test(kind)) return;
    logged_.set(kind);
    log_line(LogLevel::warning,
             fmt::format("gobgpd at {} answered with {} ({}): left out, as is every further one",
                         target_, gobgp::oddity_text(oddity), detail));
  }

  Loop& loop_;
  const std::string target_;
  gobgp::Calls calls_;
  const std::unique_ptr<apipb::GobgpApi::Stub> nowhere_ =
      apipb::GobgpApi::NewStub(grpc::CreateChannel({}, nullptr));
  std::unique_ptr<apipb::GobgpApi::Stub> stub_;
  // The connection that was given up, until the next one answers. A process that hangs finds in it
  // what was sent, and does it when it goes on; one that was begun meanwhile takes nothing.
  std::unique_ptr<apipb::GobgpApi::Stub> silent_stub_;
  std::uint32_t own_as_ = 0;  // of the last add()
  int silences_ = 0;          // identify() in a row
  std::bitset<gobgp::kOddities> logged_;
  const gobgp::Leave leave_ = [this](gobgp::Oddity oddity, const std::string& detail) {
    leave_out(oddity, detail);
  };

  News news_;
  gobgp::Calls::Context watch_call_;  // none between two tries
  Loop::TimerId watch_timer_ = 0;
  milliseconds pause_ = kFirstPause;
  bool watching_ = false;  // the present watch has begun
  bool replaced_ = false;  // its connection was given up: its end is no news
};

}  // namespace

std::unique_ptr<BgpSpeaker> make_gobgp_speaker(Loop& loop, const std::string& target) {
  silence_libraries();
  return std::make_unique<GobgpSpeaker>(loop, target);
}

}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
#include "ctrl/server/connection.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "ctrl/log.h"
#include "ctrl/loop/boot_clock.h"

namespace holdfast {
namespace {

/// The answer to one request of one connection.
class ConnectionReply : public Reply {
 public:
  ConnectionReply(const std::shared_ptr<Connection>& connection, std::uint64_t id)
      : connection_(connection), peer_(connection->peer()), id_(id) {}
  ~ConnectionReply() override {
    if (!answered_) error({.message = "the command ended without an answer", .code = "internal"});
  }

  void event(const Json& event) override {
    if (const auto c = connection_.lock(); c && c->open()) c->send(format_event(id_, event));
  }
  void result(const Json& result) override { finish(format_result(id_, result)); }
  void error(const Error& error) override { finish(format_error(id_, error)); }
  [[nodiscard]] bool gone() const override {
    const auto c = connection_.lock();
    return !c || !c->open();
  }
  [[nodiscard]] const Peer& peer() const override { return peer_; }

 private:
  void finish(const std::string& line) {
    if (std::exchange(answered_, true)) return;
    const auto c = connection_.lock();
    if (!c || !c->open()) return;
    c->finished();
    c->send(line);
  }

  std::weak_ptr<Connection> connection_;
  Peer peer_;
  std::uint64_t id_;
  bool answered_ = false;
};

}  // namespace

Connection::Connection(Server& server, UniqueFd socket, Peer peer)
    : server_(server), socket_(std::move(socket)), peer_(peer), last_busy_(boot_now()) {}

bool Connection::idle() const {
  return running_requests_ == 0 && !turn_posted_ && sent_ == output_.size();
}

bool Connection::start() {
  interest_ = EPOLLIN;
  return server_.loop_.watch(socket_.get(), interest_, "a CLI client",
                             [this, self = weak_from_this()](std::uint32_t events) {
                               if (const auto alive = self.lock()) on_events(events);
                             }) == 0;
}

void Connection::close() {
  if (!open()) return;
  const int fd = socket_.get();
  server_.loop_.unwatch(fd);
  socket_ = UniqueFd();
  output_.clear();
  server_.forget(fd);  // may free this object unless a caller holds it
}

void Connection::on_events(std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) flush();
  if (open() && (events & EPOLLIN) != 0) receive();
  // After a hang-up nothing sent can arrive. (A client that only shut its sending side down is no
  // hang-up: it still gets its answers.)
  if (open() && (events & (EPOLLERR | EPOLLHUP)) != 0) close();
}

void Connection::receive() {
  last_busy_ = boot_now();
  // One piece a turn: the loop is level triggered and comes back for the rest.
  std::array<char, 16 * 1024> piece;  // NOLINT: filled by recv
  const auto got = recv(socket_.get(), piece.data(), piece.size(), 0);
  if (got < 0) {
    if (errno != EAGAIN && errno != EINTR) close();
    return;
  }
  if (got == 0) {
    end_of_input_ = true;
  } else {
    input_.append({piece.data(), static_cast<std::size_t>(got)});
  }
  run_requests();
}

void Connection::run_requests() {
  const auto deadline = boot_now() + Server::kTurn;
  while (open() && !closing_) {
    auto line = input_.next();
    if (!line) break;
    run_request(*line);
    if (boot_now() >= deadline) {
      if (!std::exchange(turn_posted_, true)) {
        server_.loop_.post([weak = weak_from_this()] {
          const auto self = weak.lock();
          if (!self) return;
          self->turn_posted_ = false;
          self->run_requests();
        });
      }
      update_interest();  // nothing more is read while requests wait
      return;
    }
  }
  if (open() && !closing_ && input_.too_long()) {
    closing_ = true;  // where the next request starts is not known any more
    send(format_error({}, {.message = fmt::format("a request may have at most {} bytes; the "
                                                  "connection is closed",
                                                  kMaxRequestBytes),
                           .code = "too_long"}));
  }
  if (end_of_input_) all_requests_run_ = true;
  flush();
}

void Connection::run_request(std::string_view line) {
  if (line.find_first_not_of(" \t") == std::string_view::npos) return;  // an empty line is no fault
  const auto parsed = parse_request(line);
  if (!parsed.request) {
    send(format_error(parsed.id, parsed.request.error()));
    return;
  }
  if (running_requests_ >= Server::kMaxRunningRequests) {
    send(format_error(parsed.id,
                      {.message = fmt::format("one client may have at most {} requests running",
                                              Server::kMaxRunningRequests),
                       .code = "busy"}));
    return;
  }
  ++running_requests_;
  server_.handler_(parsed.request->command, parsed.request->arguments,
                   std::make_shared<ConnectionReply>(shared_from_this(), parsed.request->id));
}

void Connection::send(std::string_view line) {
  if (!open()) return;
  if (output_.size() - sent_ > kMaxUnreadBytes) {
    log_line(
        LogLevel::warning,
        fmt::format("a CLI client (pid {}) does not read its answers and is dropped", peer_.pid));
    close();
    return;
  }
  output_ += line;
  flush();
}

void Connection::flush() {
  last_busy_ = boot_now();
  while (open() && sent_ < output_.size()) {
    const auto took = ::send(socket_.get(), output_.data() + sent_, output_.size() - sent_,
                             MSG_NOSIGNAL | MSG_DONTWAIT);
    if (took < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN) close();
      break;
    }
    sent_ += static_cast<std::size_t>(took);
  }
  if (!open()) return;
  if (sent_ == output_.size()) {
    output_.clear();
    sent_ = 0;
    if (closing_ || (all_requests_run_ && running_requests_ == 0)) {
      close();
      return;
    }
  } else if (sent_ > kMaxUnreadBytes) {
    output_.erase(0, sent_);
    sent_ = 0;
  }
  update_interest();
}

void Connection::update_interest() {
  if (!open()) return;
  // EPOLLRDHUP is not asked for: a client that only ended its input still gets its answers.
  const bool reads = !end_of_input_ && !closing_ && !turn_posted_;
  const std::uint32_t wanted = (reads ? EPOLLIN : 0U) | (sent_ < output_.size() ? EPOLLOUT : 0U);
  if (wanted == interest_) return;
  interest_ = wanted;
  server_.loop_.change(socket_.get(), wanted);
}

}  // namespace holdfast

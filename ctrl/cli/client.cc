// SPDX-License-Identifier: Apache-2.0
#include "ctrl/cli/client.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

#include "lib/base/printable.h"
#include "lib/base/unique_fd.h"
#include "lib/protocol/line_buffer.h"
#include "lib/protocol/socket_path.h"

namespace holdfast {
namespace {

Asked no_answer(ExitCode exit, std::string message, std::string code) {
  return {.exit = exit, .error = {.message = std::move(message), .code = std::move(code)}};
}

/// Why no socket can lie at `path`, whatever is there.
std::optional<std::string> why_no_path(const std::string& path) {
  if (path.empty()) return "--socket is empty: it must be the path of holdfastd's socket";
  if (path.size() <= kMaxSocketPath) return std::nullopt;
  return fmt::format("--socket has {} bytes, but a socket's path has at most {}: {}", path.size(),
                     kMaxSocketPath, in_quotes(path));
}

/// "a folder" and the like if something else than a socket lies at `path`.
std::string_view what_else_lies_at(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0 || S_ISSOCK(info.st_mode)) return {};
  if (S_ISDIR(info.st_mode)) return "a folder";
  return S_ISREG(info.st_mode) ? "a file" : "a device or pipe";
}

Asked not_connected(const std::string& socket_path, int error) {
  const auto path = printable_path(socket_path);
  // First, because the kernel says of such a thing that the connection was refused.
  if (const auto what = what_else_lies_at(socket_path); !what.empty()) {
    return no_answer(
        ExitCode::no_daemon,
        fmt::format("{} is {}, not a socket: name holdfastd's socket with --socket", path, what),
        "no_daemon");
  }
  if (error == ENOENT || error == ENOTDIR) {
    return no_answer(
        ExitCode::no_daemon,
        fmt::format("no holdfastd is running: there is no socket {} (start it, or name "
                    "its socket with --socket)",
                    path),
        "no_daemon");
  }
  if (error == EPROTOTYPE) {
    return no_answer(ExitCode::no_daemon,
                     fmt::format("{} is a socket of another kind: name holdfastd's socket with "
                                 "--socket",
                                 path),
                     "no_daemon");
  }
  if (error == ECONNREFUSED) {
    return no_answer(ExitCode::no_daemon,
                     fmt::format("holdfastd is not running: nobody listens on {} (its last run "
                                 "ended without removing it; start holdfastd)",
                                 path),
                     "no_daemon");
  }
  if (error == EACCES || error == EPERM) {
    return no_answer(ExitCode::no_permission,
                     fmt::format("no permission to use {}: run this as root, or as a member of the "
                                 "socket's group",
                                 path),
                     "permission");
  }
  return no_answer(
      ExitCode::no_daemon,
      fmt::format("{} can not be used: {}", path, std::generic_category().message(error)),
      "no_daemon");
}

Asked outcome_of(Answer answer) {
  if (answer.kind == Answer::Kind::result) return {.result = std::move(answer.body)};
  auto exit = ExitCode::refused;
  if (answer.error.code == kWaitNotFulfilled) exit = ExitCode::wait_not_fulfilled;
  if (answer.error.code == "usage") exit = ExitCode::usage;
  if (answer.error.code == "permission") exit = ExitCode::no_permission;
  return {.exit = exit, .error = std::move(answer.error)};
}

/// How long connecting, sending and receiving may each block; 0 is for ever.
void set_patience(int fd, std::chrono::seconds patience) {
  timeval time{};
  time.tv_sec = patience.count();
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
}

Asked too_late(const std::string& socket_path) {
  return no_answer(
      ExitCode::no_daemon,
      fmt::format("holdfastd at {} does not answer within {} s: it is stopped or hangs (a change "
                  "that was asked for may still happen when it goes on)",
                  printable_path(socket_path), kAnswerWithin.count()),
      "no_answer");
}

bool send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto took = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (took < 0 && errno == EINTR) continue;
    if (took < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(took));
  }
  return true;
}

}  // namespace

Asked ask(const std::string& socket_path, const Request& request,
          const std::function<Result<void>(const Json& event)>& on_event) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  static_assert(kMaxSocketPath < sizeof address.sun_path);
  if (auto why = why_no_path(socket_path)) {
    return no_answer(ExitCode::usage, std::move(*why), "usage");
  }
  std::memcpy(address.sun_path, socket_path.data(), socket_path.size());
  const UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return not_connected(socket_path, errno);
  set_patience(fd.get(), kAnswerWithin);
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (errno == EAGAIN) return too_late(socket_path);  // its queue is full, nobody accepts
    return not_connected(socket_path, errno);
  }

  const auto line = format_request(request);
  if (line.size() > kMaxRequestBytes + 1) {
    return no_answer(ExitCode::refused,
                     fmt::format("the request is longer than {} bytes", kMaxRequestBytes),
                     "too_long");
  }
  // A daemon that refuses the connection says why and closes: read even if sending failed.
  send_all(fd.get(), line);

  LineBuffer lines(kMaxAnswerBytes);
  std::array<char, 64 * 1024> piece;  // NOLINT: filled by recv
  bool answered = false;
  for (;;) {
    while (const auto text = lines.next()) {
      auto answer = parse_answer(*text);
      if (!answer) return no_answer(ExitCode::refused, answer.error().message, "bad_answer");
      if (answer->id && *answer->id != request.id) continue;
      if (answer->kind != Answer::Kind::event) return outcome_of(std::move(*answer));
      if (!std::exchange(answered, true)) set_patience(fd.get(), std::chrono::seconds{0});
      if (answer->body.empty()) continue;
      if (auto told = on_event(answer->body); !told) {
        return {.exit = ExitCode::refused, .error = std::move(told.error())};
      }
    }
    if (lines.too_long()) {
      return no_answer(ExitCode::refused, "the daemon's answer is too long to be one",
                       "bad_answer");
    }
    const auto got = recv(fd.get(), piece.data(), piece.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return too_late(socket_path);
    if (got <= 0) {
      return no_answer(ExitCode::no_daemon,
                       "holdfastd closed the connection before it answered: it stopped, or dropped "
                       "this client (its log says which)",
                       "no_daemon");
    }
    lines.append({piece.data(), static_cast<std::size_t>(got)});
  }
}

}  // namespace holdfast

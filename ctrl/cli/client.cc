// SPDX-License-Identifier: Apache-2.0
#include "ctrl/cli/client.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "lib/base/unique_fd.h"
#include "lib/protocol/line_buffer.h"

namespace holdfast {
namespace {

Asked no_answer(ExitCode exit, std::string message, std::string code) {
  return {.exit = exit, .error = {.message = std::move(message), .code = std::move(code)}};
}

Asked not_connected(const std::string& path, int error) {
  if (error == ENOENT) {
    return no_answer(
        ExitCode::no_daemon,
        fmt::format("no holdfastd is running: there is no socket {} (start it, or name "
                    "its socket with --socket)",
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
          const std::function<void(const Json& event)>& on_event) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_path.empty() || socket_path.size() >= sizeof address.sun_path) {
    return not_connected(socket_path, ENAMETOOLONG);
  }
  std::memcpy(address.sun_path, socket_path.data(), socket_path.size());
  const UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return not_connected(socket_path, errno);
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
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
  for (;;) {
    while (const auto text = lines.next()) {
      auto answer = parse_answer(*text);
      if (!answer) return no_answer(ExitCode::refused, answer.error().message, "bad_answer");
      if (answer->id && *answer->id != request.id) continue;
      if (answer->kind != Answer::Kind::event) return outcome_of(std::move(*answer));
      on_event(answer->body);
    }
    if (lines.too_long()) {
      return no_answer(ExitCode::refused, "the daemon's answer is too long to be one",
                       "bad_answer");
    }
    const auto got = recv(fd.get(), piece.data(), piece.size(), 0);
    if (got < 0 && errno == EINTR) continue;
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

// SPDX-License-Identifier: Apache-2.0
#include "ctrl/server/server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "ctrl/log.h"
#include "ctrl/loop/boot_clock.h"
#include "ctrl/server/connection.h"
#include "lib/base/printable.h"
#include "lib/protocol/socket_path.h"

namespace holdfast {
namespace {

std::string reason(int error) { return std::generic_category().message(error); }

tl::unexpected<Error> refuse(const std::string& path, std::string message) {
  return fail(std::move(message), "control socket " + printable_path(path));
}

UniqueFd new_socket() {
  return UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

/// Why nothing may be put at `path`, or nothing if the place is free (a dead daemon's socket is
/// removed on the way). Requires: the folder is locked.
std::optional<std::string> occupied(const std::string& path, const sockaddr_un& address) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return std::nullopt;
    return fmt::format("can not be looked at: {}", reason(errno));
  }
  if (!S_ISSOCK(info.st_mode)) {
    return "something that is not a socket lies there: remove it, or set [control] socket";
  }
  const auto probe = new_socket();
  if (connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    ucred daemon{};
    socklen_t size = sizeof daemon;
    getsockopt(probe.get(), SOL_SOCKET, SO_PEERCRED, &daemon, &size);
    return fmt::format(
        "another holdfastd (pid {}) listens there: stop it first, or set [control] "
        "socket to another path",
        daemon.pid);
  }
  if (errno == EAGAIN) return "another holdfastd listens there and is busy: stop it first";
  if (errno != ECONNREFUSED) return fmt::format("can not be tried: {}", reason(errno));
  if (unlink(path.c_str()) != 0) {
    return fmt::format("a dead daemon's socket can not be removed: {}", reason(errno));
  }
  return std::nullopt;
}

}  // namespace

Result<std::unique_ptr<Server>> Server::listen(Loop& loop, std::string path, Handler handler) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  static_assert(kMaxSocketPath < sizeof address.sun_path);
  if (path.empty() || path.size() > kMaxSocketPath) {
    return refuse(path, fmt::format("a socket path has 1 to {} bytes", kMaxSocketPath));
  }
  std::memcpy(address.sun_path, path.data(), path.size());

  auto folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  std::error_code fault;
  std::filesystem::create_directories(folder, fault);
  if (fault) return refuse(path, fmt::format("the folder can not be made: {}", fault.message()));

  // Two daemons that start at once must not both find a dead socket and remove each other's new
  // one.
  const UniqueFd lock(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock.valid())
    return refuse(path, fmt::format("the folder can not be opened: {}", reason(errno)));
  if (flock(lock.get(), LOCK_EX) != 0) {
    return refuse(path, fmt::format("the folder can not be locked: {}", reason(errno)));
  }
  if (auto why = occupied(path, address)) return refuse(path, std::move(*why));

  auto socket = new_socket();
  if (!socket.valid()) return refuse(path, fmt::format("no socket: {}", reason(errno)));
  // Before bind, so that the file is never wider than 0660; after it, because umask may cut bits.
  fchmod(socket.get(), 0660);
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return refuse(path, fmt::format("can not be made: {}", reason(errno)));
  }
  struct stat info {};
  if (chmod(path.c_str(), 0660) != 0 || stat(path.c_str(), &info) != 0 ||
      ::listen(socket.get(), 128) != 0) {
    const int error = errno;
    unlink(path.c_str());
    return refuse(path, fmt::format("can not be listened on: {}", reason(error)));
  }
  std::unique_ptr<Server> server(
      new Server(loop, std::move(path), std::move(handler), std::move(socket)));
  server->device_ = info.st_dev;
  server->inode_ = info.st_ino;
  if (const int error = server->accept_from_now_on(); error != 0) {
    return refuse(server->path_, fmt::format("can not be watched: {}", reason(error)));
  }
  return server;
}

Server::Server(Loop& loop, std::string path, Handler handler, UniqueFd socket)
    : loop_(loop),
      path_(std::move(path)),
      handler_(std::move(handler)),
      socket_(std::move(socket)) {}

int Server::accept_from_now_on() {
  return loop_.watch(socket_.get(), EPOLLIN, "new CLI clients",
                     [this](std::uint32_t) { accept_clients(); });
}

Server::~Server() {
  loop_.cancel(accept_again_);
  loop_.unwatch(socket_.get());
  std::vector<std::shared_ptr<Connection>> all;
  for (auto& [fd, connection] : connections_) all.push_back(connection);
  for (auto& connection : all) connection->close();
  struct stat info {};
  if (stat(path_.c_str(), &info) == 0 && info.st_dev == device_ && info.st_ino == inode_) {
    unlink(path_.c_str());
  }
}

void Server::accept_clients() {
  for (int i = 0; i < 16; ++i) {  // a bounded piece a turn
    UniqueFd fd(accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd.valid()) {
      // Out of descriptors: the client stays in the queue; trying again at once would only spin.
      if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) {
        log_line(LogLevel::warning,
                 fmt::format("no CLI client can be accepted: {}", reason(errno)));
        loop_.change(socket_.get(), 0);
        loop_.cancel(accept_again_);
        accept_again_ = loop_.call_after(std::chrono::seconds(1), "accepting CLI clients again",
                                         [this] { loop_.change(socket_.get(), EPOLLIN); });
      }
      return;
    }
    if (connections_.size() >= kMaxClients && !make_room()) {
      const auto line =
          format_error({}, {.message = fmt::format("{} clients are connected already", kMaxClients),
                            .code = "busy"});
      [[maybe_unused]] const auto sent =
          send(fd.get(), line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      continue;
    }
    ucred credentials{};
    socklen_t size = sizeof credentials;
    getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &size);
    const int number = fd.get();
    auto connection =
        std::make_shared<Connection>(*this, std::move(fd), Peer{credentials.uid, credentials.pid});
    if (connection->start()) connections_[number] = std::move(connection);
  }
}

bool Server::make_room() {
  std::shared_ptr<Connection> longest;
  for (const auto& [fd, connection] : connections_)
    if (connection->idle() && (!longest || connection->last_busy() < longest->last_busy()))
      longest = connection;
  if (!longest || boot_now() - longest->last_busy() < kIdle) return false;
  log_line(LogLevel::debug,
           fmt::format("a CLI client (pid {}) that was idle is dropped: {} clients are connected",
                       longest->peer().pid, connections_.size()));
  longest->close();
  return true;
}

void Server::forget(int fd) { connections_.erase(fd); }

}  // namespace holdfast

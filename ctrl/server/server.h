// SPDX-License-Identifier: Apache-2.0
// The CLI's end of the daemon: a Unix socket on which clients ask with JSON lines
// (lib/protocol/message.h). Owned by ControlPlane, control thread only. No client can stall another
// or the loop: sockets never block, a turn takes a bounded piece of one client's requests, and a
// client that does not read is dropped, and idle ones shut nobody out.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "ctrl/loop/loop.h"
#include "ctrl/server/reply.h"
#include "lib/base/result.h"
#include "lib/base/unique_fd.h"

namespace holdfast {

class Connection;

class Server {
 public:
  /// Runs one request; may keep `reply` and answer later.
  using Handler = std::function<void(std::string_view command, const Json& arguments,
                                     std::shared_ptr<Reply> reply)>;

  static constexpr std::size_t kMaxClients = 256;
  /// When all places are taken, a client that has had nothing to do for so long gives up its own.
  static constexpr std::chrono::seconds kIdle{1};
  static constexpr std::size_t kMaxRunningRequests = 16;  // a client
  static constexpr std::chrono::milliseconds kTurn{5};    // of one client's requests at a stretch

  /// Listens on `path` (mode 0660; its folder is made if missing). A socket that a dead daemon left
  /// is replaced; a live daemon's, or anything else at `path`, is left alone and refused.
  [[nodiscard]] static Result<std::unique_ptr<Server>> listen(Loop& loop, std::string path,
                                                              Handler handler);
  /// Drops all clients; removes the socket if it is still ours.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  [[nodiscard]] std::size_t clients() const { return connections_.size(); }

 private:
  friend class Connection;
  Server(Loop& loop, std::string path, Handler handler, UniqueFd socket);

  [[nodiscard]] int accept_from_now_on();  // 0 or an errno
  void accept_clients();
  /// Drops the client that has been idle longest. False: none has been for kIdle.
  [[nodiscard]] bool make_room();
  void forget(int fd);

  Loop& loop_;
  std::string path_;
  Handler handler_;
  UniqueFd socket_;
  Loop::TimerId accept_again_ = 0;
  std::uint64_t device_ = 0;  // of the socket file that we made
  std::uint64_t inode_ = 0;
  std::unordered_map<int, std::shared_ptr<Connection>> connections_;
};

}  // namespace holdfast

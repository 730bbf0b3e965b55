// SPDX-License-Identifier: Apache-2.0
// One client of the server: its unread requests and unsent answers. Kept alive by Server and, while
// a turn runs, by itself; replies hold it weakly. Control thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "ctrl/server/reply.h"
#include "ctrl/server/server.h"
#include "lib/base/instant.h"
#include "lib/base/unique_fd.h"
#include "lib/protocol/line_buffer.h"
#include "lib/protocol/message.h"

namespace holdfast {

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Server& server, UniqueFd socket, Peer peer);

  /// Watches the socket. Once, right after it was made. False: the kernel refuses.
  [[nodiscard]] bool start();
  /// Puts a whole line behind what the client has not read yet, or drops the client.
  void send(std::string_view line);
  /// A request got its result or error.
  void finished() { --running_requests_; }
  /// No request waits or runs, and no answer is unsent.
  [[nodiscard]] bool idle() const;
  /// When it was last seen to do anything: it connected, asked or was answered.
  [[nodiscard]] Instant last_busy() const { return last_busy_; }
  /// Stops watching and closes; replies see the client as gone.
  void close();
  [[nodiscard]] bool open() const { return socket_.valid(); }
  [[nodiscard]] const Peer& peer() const { return peer_; }

 private:
  void on_events(std::uint32_t events);
  void receive();
  /// Runs requests that have arrived, for one turn at most.
  void run_requests();
  void run_request(std::string_view line);
  void flush();
  void update_interest();

  Server& server_;
  UniqueFd socket_;
  Peer peer_;
  LineBuffer input_{kMaxRequestBytes};
  std::string output_;
  std::size_t sent_ = 0;  // bytes of output_ that the kernel took
  std::size_t running_requests_ = 0;
  Instant last_busy_;
  std::uint32_t interest_ = 0;  // epoll events asked for
  bool turn_posted_ = false;    // more requests wait for the next turn
  bool end_of_input_ = false;
  bool all_requests_run_ = false;  // and no more can come
  bool closing_ = false;           // close when all is sent
};

}  // namespace holdfast

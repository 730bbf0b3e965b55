// SPDX-License-Identifier: Apache-2.0
// The socket server over real Unix sockets in a folder of its own, with a handler that stands in
// for the commands.
#include "ctrl/server/server.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "lib/base/unique_fd.h"
#include "lib/protocol/line_buffer.h"
#include "lib/protocol/message.h"
#include "tests/catch.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

class TempFolder {
 public:
  TempFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "holdfast-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  [[nodiscard]] std::string file(std::string_view name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

UniqueFd connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return {};
  return fd;
}

class Client {
 public:
  explicit Client(const std::string& path) : fd_(connect_to(path)) { REQUIRE(fd_.valid()); }

  void write(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto took = send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (took <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(took));
    }
  }
  void ask(std::uint64_t id, const std::string& command) {
    write(format_request({.id = id, .command = command}));
  }
  /// The next answer, or nothing when the server closed or two seconds passed.
  std::optional<Answer> answer() {
    for (;;) {
      if (const auto line = lines_.next()) {
        auto parsed = parse_answer(*line);
        REQUIRE(parsed);
        return *parsed;
      }
      if (!fill()) return std::nullopt;
    }
  }
  /// True when the server has closed the connection (after reading what is left).
  bool closed() {
    while (fill()) {
    }
    return at_end_;
  }
  void shut_sending() { shutdown(fd_.get(), SHUT_WR); }

 private:
  bool fill() {
    pollfd waiting{fd_.get(), POLLIN, 0};
    if (poll(&waiting, 1, 2000) <= 0) return false;
    char piece[65536];
    const auto got = recv(fd_.get(), piece, sizeof piece, 0);
    at_end_ = got <= 0;
    if (at_end_) return false;
    lines_.append({piece, static_cast<std::size_t>(got)});
    return true;
  }

  UniqueFd fd_;
  LineBuffer lines_{kMaxAnswerBytes};
  bool at_end_ = false;
};

/// Of a server that nobody asks.
void nothing(std::string_view /*command*/, const Json& /*arguments*/,
             const std::shared_ptr<Reply>& /*reply*/) {}

/// A server in a thread of its own. Commands: "echo" answers at once, "hold" never, "flood" sends
/// 4 MiB of events, "fail" refuses, "slow" takes 20 ms.
class ServerUnderTest {
 public:
  ServerUnderTest() {
    auto listening = Server::listen(loop_, path(), std::bind_front(&ServerUnderTest::run, this));
    REQUIRE(listening);
    server_ = std::move(*listening);
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~ServerUnderTest() {
    loop_.stop();
    thread_.join();
    held_.clear();
    server_.reset();
  }
  [[nodiscard]] std::string path() const { return folder_.file("run/holdfast.sock"); }

 private:
  void run(std::string_view command, const Json& arguments, const std::shared_ptr<Reply>& reply) {
    if (command == "echo") reply->result(arguments);
    if (command == "fail") reply->error({.message = "no", .code = "refused"});
    if (command == "hold") held_.push_back(reply);
    if (command == "slow") {
      std::this_thread::sleep_for(20ms);
      reply->result(Json::object());
    }
    if (command == "flood") {
      for (int i = 0; i < 400; ++i) reply->event({{"text", std::string(10'000, 'x')}});
      if (!reply->gone()) reply->result(Json::object());
    }
  }

  TempFolder folder_;
  Loop loop_;
  std::vector<std::shared_ptr<Reply>> held_;
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

TEST_CASE(
    "the socket is made with its folder, for owner and group only, and goes with the server") {
  TempFolder folder;
  const auto path = folder.file("deep/er/holdfast.sock");
  Loop loop;
  {
    auto server = Server::listen(loop, path, nothing);
    REQUIRE(server);
    struct stat info {};
    REQUIRE(stat(path.c_str(), &info) == 0);
    CHECK((info.st_mode & 0777) == 0660);
  }
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("a dead daemon's socket is replaced, a live daemon's is refused") {
  TempFolder folder;
  const auto path = folder.file("holdfast.sock");
  {  // bound and closed without unlink: what kill -9 leaves
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    const UniqueFd dead(socket(AF_UNIX, SOCK_STREAM, 0));
    REQUIRE(bind(dead.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  }
  Loop loop;
  auto first = Server::listen(loop, path, nothing);
  REQUIRE(first);
  auto second = Server::listen(loop, path, nothing);
  REQUIRE_FALSE(second);
  CHECK(second.error().message.find("another holdfastd (pid ") != std::string::npos);
  CHECK(std::filesystem::exists(path));
}

TEST_CASE("a file in the socket's place is never removed") {
  TempFolder folder;
  const auto path = folder.file("holdfast.sock");
  std::ofstream(path) << "precious";
  Loop loop;
  auto server = Server::listen(loop, path, nothing);
  REQUIRE_FALSE(server);
  CHECK(server.error().message.find("not a socket") != std::string::npos);
  CHECK(std::filesystem::file_size(path) == 8);
}

TEST_CASE("a socket path that the kernel can not hold is refused") {
  Loop loop;
  auto server = Server::listen(loop, "/tmp/" + std::string(120, 'x'), nothing);
  REQUIRE_FALSE(server);
  CHECK(server.error().message.find("107 bytes") != std::string::npos);
}

TEST_CASE("requests are answered in order, also when they come in pieces or several at once") {
  ServerUnderTest server;
  Client client(server.path());
  const auto request = format_request({.id = 1, .command = "echo", .arguments = {{"a", "b"}}});
  for (const char c : request) client.write({&c, 1});
  auto answer = client.answer();
  REQUIRE(answer);
  CHECK(answer->kind == Answer::Kind::result);
  CHECK(text_at(answer->body, "a") == "b");

  std::string many;
  for (std::uint64_t id = 2; id < 300; ++id) many += format_request({.id = id, .command = "echo"});
  client.write(many);
  for (std::uint64_t id = 2; id < 300; ++id) {
    answer = client.answer();
    REQUIRE(answer);
    CHECK(answer->id == id);
  }
}

TEST_CASE("what is not a request gets an error, and the connection goes on") {
  ServerUnderTest server;
  Client client(server.path());
  client.write("garbage\n");
  client.write(std::string("\x00\x01\xff\xfe\x80\n", 6));
  client.write("{\"v\":1,\"id\":5}\n");
  for (int i = 0; i < 3; ++i) {
    const auto answer = client.answer();
    REQUIRE(answer);
    CHECK(answer->kind == Answer::Kind::error);
    CHECK(answer->error.code == "bad_request");
  }
  client.ask(6, "fail");
  CHECK(client.answer()->error.message == "no");
  client.ask(7, "echo");
  CHECK(client.answer()->kind == Answer::Kind::result);
}

TEST_CASE("a request that is too long gets an error and the connection is closed") {
  for (const bool with_end : {true, false}) {
    CAPTURE(with_end);
    ServerUnderTest server;
    Client client(server.path());
    client.ask(1, "echo");
    client.write(std::string(kMaxRequestBytes + 100, 'x') + (with_end ? "\n" : ""));
    REQUIRE(client.answer());
    const auto answer = client.answer();
    REQUIRE(answer);
    CHECK(answer->error.code == "too_long");
    CHECK(client.closed());
    Client next(server.path());
    next.ask(2, "echo");
    CHECK(next.answer());
  }
}

TEST_CASE("a client that only ends its input still gets all its answers") {
  ServerUnderTest server;
  Client client(server.path());
  for (std::uint64_t id = 1; id <= 3; ++id) client.ask(id, "slow");
  client.shut_sending();
  for (std::uint64_t id = 1; id <= 3; ++id) {
    const auto answer = client.answer();
    REQUIRE(answer);
    CHECK(answer->id == id);
  }
  CHECK(client.closed());
}

TEST_CASE("a client that does not read is dropped, and stalls nobody meanwhile") {
  ServerUnderTest server;
  Client silent(server.path());
  silent.ask(1, "flood");
  const auto start = boot_now();
  for (std::uint64_t id = 1; id <= 20; ++id) {
    Client other(server.path());
    other.ask(id, "echo");
    REQUIRE(other.answer());
  }
  CHECK(boot_now() - start < 1s);
  // It reads at last: part of the events came, the rest did not, and no result.
  std::size_t events = 0;
  bool result = false;
  while (const auto answer = silent.answer()) {
    if (answer->kind == Answer::Kind::event) ++events;
    if (answer->kind == Answer::Kind::result) result = true;
  }
  CHECK(silent.closed());
  CHECK(events < 400);
  CHECK_FALSE(result);
}

TEST_CASE("a client with many slow requests does not keep another waiting for all of them") {
  ServerUnderTest server;
  Client greedy(server.path());
  for (std::uint64_t id = 1; id <= 100; ++id) greedy.ask(id, "slow");  // 2 s of work
  std::this_thread::sleep_for(5ms);
  const auto start = boot_now();
  Client other(server.path());
  other.ask(1, "echo");
  REQUIRE(other.answer());
  CHECK(boot_now() - start < 1s);
  for (std::uint64_t id = 1; id <= 100; ++id) CHECK(greedy.answer()->id == id);
}

TEST_CASE("one client can not have requests without end running") {
  ServerUnderTest server;
  Client client(server.path());
  for (std::uint64_t id = 1; id <= Server::kMaxRunningRequests; ++id) client.ask(id, "hold");
  client.ask(99, "echo");
  const auto answer = client.answer();
  REQUIRE(answer);
  CHECK(answer->id == 99);
  CHECK(answer->error.code == "busy");
}

TEST_CASE("a hundred clients are served at once, and the 257th is told to come back") {
  ServerUnderTest server;
  std::vector<std::unique_ptr<Client>> clients;
  for (std::size_t i = 0; i < Server::kMaxClients; ++i) {
    clients.push_back(std::make_unique<Client>(server.path()));
  }
  for (std::size_t i = 0; i < clients.size(); ++i) clients[i]->ask(i, "echo");
  for (std::size_t i = 0; i < clients.size(); ++i) {
    const auto answer = clients[i]->answer();
    REQUIRE(answer);
    CHECK(answer->id == i);
  }
  Client one_more(server.path());
  const auto refused = one_more.answer();
  REQUIRE(refused);
  CHECK(refused->error.code == "busy");
  CHECK(one_more.closed());
  clients.clear();
  std::this_thread::sleep_for(50ms);
  Client again(server.path());
  again.ask(1, "echo");
  CHECK(again.answer());
}

TEST_CASE("idle clients shut nobody out: the one that is idle longest gives up its place") {
  ServerUnderTest server;
  Client waits(server.path());
  waits.ask(1, "hold");
  Client oldest(server.path());
  oldest.ask(1, "echo");
  REQUIRE(oldest.answer());
  std::this_thread::sleep_for(20ms);
  std::vector<std::unique_ptr<Client>> clients;
  for (std::size_t i = 2; i < Server::kMaxClients; ++i) {
    clients.push_back(std::make_unique<Client>(server.path()));
  }
  std::this_thread::sleep_for(Server::kIdle + 50ms);
  clients.front()->ask(1, "echo");  // not idle any more
  REQUIRE(clients.front()->answer());

  Client next(server.path());
  next.ask(1, "echo");
  const auto answer = next.answer();
  REQUIRE(answer);
  CHECK(answer->kind == Answer::Kind::result);
  CHECK(oldest.closed());
  // All idle ones may go; the one whose request runs, and who asked just now, stay.
  std::vector<std::unique_ptr<Client>> others;
  for (std::size_t i = 0; i < Server::kMaxClients - 3; ++i) {
    others.push_back(std::make_unique<Client>(server.path()));
    others.back()->ask(i, "echo");
    REQUIRE(others.back()->answer()->kind == Answer::Kind::result);
  }
  clients.front()->ask(2, "echo");
  CHECK(clients.front()->answer());
  CHECK(clients.back()->closed());
  waits.ask(2, "echo");
  CHECK(waits.answer()->id == 2);
}

TEST_CASE("a client that leaves is noticed by what it waits for") {
  TempFolder folder;
  Loop loop;
  std::shared_ptr<Reply> held;
  auto server = Server::listen(
      loop, folder.file("s"),
      [&](std::string_view, const Json&, const std::shared_ptr<Reply>& reply) { held = reply; });
  REQUIRE(server);
  {
    Client client(folder.file("s"));
    client.ask(1, "wait");
    for (int i = 0; i < 100 && !held; ++i) loop.run_once(10ms);
    REQUIRE(held);
    CHECK(held->peer().uid == getuid());
    CHECK(held->peer().pid == getpid());
    CHECK_FALSE(held->gone());
  }
  for (int i = 0; i < 100 && !held->gone(); ++i) loop.run_once(10ms);
  CHECK(held->gone());
  CHECK((*server)->clients() == 0);
  held->event({{"ignored", true}});
  held->result(Json::object());
}

}  // namespace
}  // namespace holdfast

// SPDX-License-Identifier: Apache-2.0
// The speaker against servers that hang, lie, flood or die. What a real gobgpd does with it is
// tests/e2e/test_gobgp.py.
#include "ctrl/announce/gobgp_speaker.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <random>
#include <string_view>
#include <vector>

#include "lib/base/unique_fd.h"
#include "tests/catch.h"
#include "tests/gobgp/fake_gobgpd.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

const Announcement kVip{.vip = *IpAddress::parse("203.0.113.10"),
                        .next_hop = *IpAddress::parse("192.0.2.1")};

/// Turns the loop until `done`, or for `longest`.
template <class Condition>
bool turn_until(Loop& loop, Condition done, std::chrono::milliseconds longest = 5s) {
  const auto limit = boot_now() + longest;
  while (!done() && boot_now() < limit) loop.run_once(10ms);
  return done();
}

void turn_for(Loop& loop, std::chrono::milliseconds time) {
  turn_until(
      loop, [] { return false; }, time);
}

/// What came for one call.
struct Came {
  int times = 0;
  std::string code{};  // empty: a value
  std::string message{};
  Instant asked = boot_now();
  Instant at{};

  template <class T>
  BgpSpeaker::Answer<T> here(const std::function<void(const T&)>& use = {}) {
    return [this, use](const Result<T>& result) {
      ++times;
      at = boot_now();
      if (!result) {
        code = result.error().code;
        message = result.error().message;
      } else if constexpr (!std::is_void_v<T>) {
        if (use) use(*result);
      }
    };
  }
  BgpSpeaker::Answer<void> here() {
    return [this](const Result<void>& result) {
      ++times;
      at = boot_now();
      if (!result) code = result.error().code, message = result.error().message;
    };
  }
  [[nodiscard]] bool once() const { return times == 1; }
};

TEST_CASE("an answer comes once, later and on the loop's thread") {
  FakeGobgpd gobgpd;
  gobgpd.start();
  Loop loop;
  const auto speaker = make_gobgp_speaker(loop, gobgpd.target());
  Came came;
  BgpIdentity who;
  std::thread::id thread;
  speaker->identify(came.here<BgpIdentity>([&](const BgpIdentity& answer) {
    who = answer;
    thread = std::this_thread::get_id();
  }));
  std::this_thread::sleep_for(100ms);
  CHECK(came.times == 0);
  REQUIRE(turn_until(loop, [&] { return came.times > 0; }));
  turn_for(loop, 100ms);
  CHECK(came.once());
  CHECK(came.code.empty());
  CHECK(who.as == 64512);
  CHECK(who.router_id == "192.0.2.1\\x0a");
  CHECK(thread == std::this_thread::get_id());
}

TEST_CASE("a server that hangs is a deadline, half a second for identify, one for the rest") {
  FakeGobgpd gobgpd;
  gobgpd.hangs = true;
  gobgpd.start();
  Loop loop;
  const auto speaker = make_gobgp_speaker(loop, gobgpd.target());
  Came identify;
  Came add;
  Came remove;
  Came list;
  speaker->identify(identify.here<BgpIdentity>());
  speaker->add(kVip, 64512, add.here());
  speaker->remove(kVip.vip, remove.here());
  speaker->list_rib(Family::ipv4, {kVip.vip}, list.here<std::vector<Announcement>>());
  REQUIRE(turn_until(
      loop, [&] { return identify.once() && add.once() && remove.once() && list.once(); }));
  for (const Came* came : {&identify, &add, &remove, &list}) CHECK(came->code == "deadline");
  CHECK(identify.at - identify.asked >= 490ms);
  CHECK(identify.at - identify.asked < 900ms);
  CHECK(add.at - add.asked >= 990ms);
  CHECK(add.at - add.asked < 1500ms);
}

TEST_CASE("the destructor ends what is under way at once, and no callback comes after it") {
  FakeGobgpd gobgpd;
  gobgpd.hangs = true;
  gobgpd.next_event = [](apipb::WatchEventResponse& event) {
    event.mutable_peer()->set_type(apipb::WatchEventResponse::PeerEvent::STATE);
    return true;
  };
  gobgpd.start();
  Loop loop;
  for (int round = 0; round < 20; ++round) {
    auto speaker = make_gobgp_speaker(loop, gobgpd.target());
    int called = 0;
    for (int i = 0; i < 20; ++i) {
      speaker->identify([&](auto&&) { ++called; });
      speaker->add(kVip, 0, [&](auto&&) { ++called; });
      speaker->list_peers([&](auto&&) { ++called; });
      speaker->list_rib(Family::ipv4, {}, [&](auto&&) { ++called; });
      speaker->remove(IpAddress(), [&](auto&&) { ++called; });
    }
    speaker->watch({.restarted = [&] { ++called; },
                    .changed = [&] { ++called; },
                    .lost = [&](const Error&) { ++called; }});
    // In all states: not even connected, or in the middle of a flood.
    if (round % 2 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(round));
    const auto before = boot_now();
    speaker.reset();
    CHECK(boot_now() - before < 300ms);
    CHECK(called == 0);
    turn_for(loop, 20ms);
    CHECK(called == 0);
  }
}

TEST_CASE("a list longer than what was asked for is cut off and refused") {
  FakeGobgpd gobgpd;
  std::atomic<int> sent{0};
  gobgpd.next_path = [&](apipb::ListPathResponse& response) {
    ++sent;
    response.mutable_destination()->set_prefix("203.0.113.10/32");
    return true;  // for ever
  };
  gobgpd.start();
  Loop loop;
  const auto speaker = make_gobgp_speaker(loop, gobgpd.target());
  Came came;
  speaker->list_rib(Family::ipv4, {kVip.vip}, came.here<std::vector<Announcement>>());
  REQUIRE(turn_until(loop, [&] { return came.once(); }));
  CHECK(came.code == "refused");
  CHECK(came.message.find("more than 1 items") != std::string::npos);
  CHECK(came.at - came.asked < 900ms);
}

TEST_CASE("a message beyond the limit is refused, and the next call works") {
  FakeGobgpd gobgpd;
  std::atomic<bool> huge{true};
  gobgpd.next_path = [&](apipb::ListPathResponse& response) {
    if (!huge.exchange(false)) return false;
    response.mutable_destination()->set_prefix(std::string(3 << 20, 'x'));
    return true;
  };
  gobgpd.start();
  Loop loop;
  const auto speaker = make_gobgp_speaker(loop, gobgpd.target());
  Came came;
  speaker->list_rib(Family::ipv4, {kVip.vip}, came.here<std::vector<Announcement>>());
  REQUIRE(turn_until(loop, [&] { return came.once(); }));
  CHECK(came.code == "refused");
  Came second;
  speaker->list_rib(Family::ipv4, {kVip.vip}, second.here<std::vector<Announcement>>());
  REQUIRE(turn_until(loop, [&] { return second.once(); }));
  CHECK(second.code.empty());
}

TEST_CASE("the text of a refusal is printable and short, whatever the bytes") {
  FakeGobgpd gobgpd;
  gobgpd.refusal = "no\n\x1b[2J\xff\xc3\x28" + std::string(2000, 'x');
  gobgpd.start();
  Loop loop;
  const auto speaker = make_gobgp_speaker(loop, gobgpd.target());
  Came came;
  speaker->add(kVip, 64512, came.here());
  REQUIRE(turn_until(loop, [&] { return came.once(); }));
  CHECK(came.code == "refused");
  CHECK(came.message.find(R"(refused: no\x0a\x1b[2J\xff\xc3(xx)") != std::string::npos);
  CHECK(came.message.size() < 700);
}

TEST_CASE("what can not be announced is refused without a call, later") {
  Loop loop;
  const auto speaker = make_gobgp_speaker(loop, "unix:/nonexistent/holdfast");
  Came add;
  Came remove;
  Came empty;
  std::size_t listed = 1;
  speaker->add({.vip = kVip.vip}, 64512, add.here());
  speaker->remove(IpAddress(), remove.here());
  speaker->list_rib(Family::ipv6, {kVip.vip},
                    empty.here<std::vector<Announcement>>(
                        [&](const std::vector<Announcement>& list) { listed = list.size(); }));
  CHECK(add.times + remove.times + empty.times == 0);
  REQUIRE(turn_until(loop, [&] { return add.once() && remove.once() && empty.once(); }));
  CHECK(add.code == "refused");
  CHECK(remove.code == "refused");
  CHECK(empty.code.empty());
  CHECK(listed == 0);
}

TEST_CASE("nobody there is unreachable at once, and a server that comes is found within a second") {
  FakeGobgpd gobgpd;
  Loop loop;
  const auto speaker = make_gobgp_speaker(loop, gobgpd.target());
  int restarted = 0;
  int lost = 0;
  speaker->watch({.restarted = [&] { ++restarted; },
                  .changed = {},
                  .lost =
                      [&](const Error& error) {
                        ++lost;
                        CHECK(error.code == "unreachable");
                      }});
  Came came;
  speaker->identify(came.here<BgpIdentity>());
  REQUIRE(turn_until(loop, [&] { return came.once(); }));
  CHECK(came.code == "unreachable");
  CHECK(came.at - came.asked < 300ms);
  turn_for(loop, 2s);  // so that its pauses have grown to the longest
  CHECK(restarted + lost == 0);

  std::atomic<bool> told{false};
  gobgpd.next_event = [&](apipb::WatchEventResponse& event) {
    event.mutable_peer()->set_type(apipb::WatchEventResponse::PeerEvent::END_OF_INIT);
    return !told.exchange(true);
  };
  for (int round = 1; round <= 2; ++round) {
    told = false;
    gobgpd.start();
    const auto start = boot_now();
    REQUIRE(turn_until(loop, [&] { return restarted == round; }));
    CHECK(boot_now() - start < 1s);
    gobgpd.stop();
    REQUIRE(turn_until(loop, [&] { return lost == round; }));
  }
}

TEST_CASE("news that comes faster than it is taken is told once") {
  FakeGobgpd gobgpd;
  gobgpd.next_event = [&](apipb::WatchEventResponse& event) {
    event.mutable_peer()->set_type(apipb::WatchEventResponse::PeerEvent::STATE);
    return gobgpd.events < 5000;
  };
  gobgpd.start();
  Loop loop;
  const auto speaker = make_gobgp_speaker(loop, gobgpd.target());
  int restarted = 0;
  int changed = 0;
  speaker->watch({.restarted = [&] { ++restarted; }, .changed = [&] { ++changed; }, .lost = {}});
  while (gobgpd.events < 5000) std::this_thread::sleep_for(5ms);
  std::this_thread::sleep_for(100ms);
  turn_for(loop, 200ms);
  CHECK(restarted == 1);
  CHECK(changed >= 1);
  CHECK(changed < 10);
}

TEST_CASE("a server that refuses to tell news is not asked more than once a second") {
  FakeGobgpd gobgpd;
  gobgpd.refusal = "no news is good news";
  gobgpd.start();
  Loop loop;
  const auto speaker = make_gobgp_speaker(loop, gobgpd.target());
  int told = 0;
  speaker->watch({.restarted = [&] { ++told; },
                  .changed = [&] { ++told; },
                  .lost = [&](const Error&) { ++told; }});
  turn_for(loop, 3500ms);  // after 0, 0.1, 0.3, 0.7, 1.5, 2.5, 3.5 s
  CHECK(gobgpd.watches >= 4);
  CHECK(gobgpd.watches <= 7);
  CHECK(told == 0);
}

/// Accepts on a Unix socket and answers everybody with random bytes.
class Babbler {
 public:
  explicit Babbler(const std::string& path) : listener_(socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    if (bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
        listen(listener_.get(), 8) != 0)
      throw std::runtime_error("cannot listen on " + path);
    thread_ = std::thread([this] { babble(); });
  }
  ~Babbler() {
    shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }

  std::atomic<int> taken{0};

 private:
  void babble() {
    std::mt19937 random(7);
    for (;;) {
      const UniqueFd guest(accept(listener_.get(), nullptr, nullptr));
      if (!guest.valid()) return;
      ++taken;
      std::string bytes(1 + random() % 4000, ' ');
      for (char& c : bytes) c = static_cast<char>(random());
      // Sometimes the beginning is right: an empty frame of SETTINGS (RFC 9113).
      if (taken % 2 == 0) bytes.insert(0, std::string("\0\0\0\4\0\0\0\0\0", 9));
      (void)!send(guest.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    }
  }

  UniqueFd listener_;
  std::thread thread_;
};

TEST_CASE("a server that does not speak HTTP/2 gets errors for answers, and never a crash") {
  const FakeGobgpd folder;
  Babbler babbler(folder.socket());
  Loop loop;
  const auto speaker = make_gobgp_speaker(loop, folder.target());
  int told = 0;
  speaker->watch({.restarted = [&] { ++told; }, .changed = {}, .lost = {}});
  const auto limit = boot_now() + 3s;
  while (boot_now() < limit) {
    Came came;
    speaker->identify(came.here<BgpIdentity>());
    REQUIRE(turn_until(loop, [&] { return came.once(); }));
    CHECK_FALSE(came.code.empty());
    turn_for(loop, 50ms);
  }
  CHECK(babbler.taken >= 3);
  CHECK(told == 0);
}

/// Takes connections over TCP, promises HTTP/2 where `greets`, and never says anything more.
class Mute {
 public:
  explicit Mute(bool greets) : listener_(socket(AF_INET, SOCK_STREAM, 0)), greets_(greets) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address_);
    auto* address = reinterpret_cast<sockaddr*>(&address_);
    if (bind(listener_.get(), address, size) != 0 || listen(listener_.get(), 64) != 0 ||
        getsockname(listener_.get(), address, &size) != 0)
      throw std::runtime_error("cannot listen");
    thread_ = std::thread([this] { take(); });
  }
  ~Mute() {
    shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }
  [[nodiscard]] std::string target() const {
    return "127.0.0.1:" + std::to_string(ntohs(address_.sin_port));
  }

  std::atomic<int> taken{0};

 private:
  void take() {
    for (;;) {
      guests_.emplace_back(accept(listener_.get(), nullptr, nullptr));
      if (!guests_.back().valid()) return;
      ++taken;
      constexpr std::string_view kEmptySettings("\0\0\0\4\0\0\0\0\0", 9);  // RFC 9113
      if (greets_)
        (void)!send(guests_.back().get(), kEmptySettings.data(), kEmptySettings.size(),
                    MSG_NOSIGNAL);
    }
  }

  UniqueFd listener_;
  const bool greets_;
  sockaddr_in address_{};
  std::vector<UniqueFd> guests_;
  std::thread thread_;
};

TEST_CASE("a dead connection is replaced over and over: nothing breaks, the loop is never held") {
  Mute gobgpd(true);
  Loop loop;
  const auto speaker = make_gobgp_speaker(loop, gobgpd.target());
  int lost = 0;
  speaker->watch({.restarted = {}, .changed = {}, .lost = [&](const Error&) { ++lost; }});
  for (int round = 0; round < 8; ++round) {
    Came came;
    for (int i = 0; i < 6; ++i) speaker->identify(came.here<BgpIdentity>());  // two replacements
    REQUIRE(turn_until(loop, [&] { return came.times == 6; }));
    CHECK(came.code == "deadline");
  }
  CHECK(gobgpd.taken >= 8);
  CHECK(lost == 0);
  CHECK(loop.slow_callbacks() == 0);
}

TEST_CASE("who takes the connection and says nothing is hung, not unreachable") {
  Mute gobgpd(false);
  Loop loop;
  const auto speaker = make_gobgp_speaker(loop, gobgpd.target());
  for (int round = 0; round < 3; ++round) {  // longer than gRPC waits for a connection, 2 s
    Came came;
    speaker->identify(came.here<BgpIdentity>());
    REQUIRE(turn_until(loop, [&] { return came.once(); }));
    CHECK(came.code == "deadline");
    turn_for(loop, 800ms);
  }
}

}  // namespace
}  // namespace holdfast

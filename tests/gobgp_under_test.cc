// SPDX-License-Identifier: Apache-2.0
// The BGP speaker alone, for tests/e2e/test_gobgp.py. Usage: gobgp_under_test TARGET. Takes
// commands from standard input, one a line, and prints an object of JSON for each answer ("id"
// counts commands from 1, "ms" is how long it took), for each piece of news and for "ready".
// Commands:
//   identify | peers | remove VIP
//   add OWN-AS VIP NEXT-HOP [med=N] [prepend=N] [community=N]...
//   rib 4|6 [VIP...] | sent PEER 4|6 [VIP...]
// At the end of its input it destroys the speaker, prints "destroyed" with the time that took, and
// ends a little later.
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <csignal>
#include <iostream>
#include <sstream>
#include <string>

#include "ctrl/announce/gobgp_speaker.h"
#include "lib/protocol/json.h"
#include "lib/protocol/line_buffer.h"

namespace holdfast {
namespace {

using std::chrono::milliseconds;

void print(const Json& line) { std::cout << to_line(line) << std::endl; }

double ms_since(Instant start) {
  return std::chrono::duration<double, std::milli>(boot_now() - start).count();
}

Json json_of(const BgpIdentity& who) { return {{"as", who.as}, {"router_id", who.router_id}}; }
Json json_of(const IpAddress& address) { return address.text(); }
Json json_of(const BgpPeer& peer) {
  return {{"address", peer.address.text()},
          {"as", peer.as},
          {"established", peer.established},
          {"ipv4", peer.ipv4},
          {"ipv6", peer.ipv6}};
}
Json json_of(const Announcement& path) {
  Json result = {{"vip", path.vip.text()},
                 {"next_hop", path.next_hop.text()},
                 {"communities", path.communities},
                 {"prepend", path.prepend}};
  result["med"] = path.med ? Json(*path.med) : Json();
  return result;
}
template <class T>
Json json_of(const std::vector<T>& list) {
  Json result = Json::array();
  for (const T& item : list) result.push_back(json_of(item));
  return result;
}

IpAddress address(std::istream& words) {
  std::string word;
  words >> word;
  return IpAddress::parse(word).value();
}

Family family(std::istream& words) {
  std::string word;
  words >> word;
  return word == "6" ? Family::ipv6 : Family::ipv4;
}

std::vector<IpAddress> addresses(std::istream& words) {
  std::vector<IpAddress> result;
  for (std::string word; words >> word;) result.push_back(IpAddress::parse(word).value());
  return result;
}

Announcement announcement(std::istream& words) {
  Announcement result;
  result.vip = address(words);
  result.next_hop = address(words);
  for (std::string word; words >> word;) {
    const auto value =
        static_cast<std::uint32_t>(std::stoul(word.substr(word.find('=') + 1), nullptr, 0));
    if (word.starts_with("med=")) result.med = value;
    if (word.starts_with("prepend=")) result.prepend = static_cast<std::uint8_t>(value);
    if (word.starts_with("community=")) result.communities.push_back(value);
  }
  return result;
}

class Driver {
 public:
  Driver(Loop& loop, const std::string& target)
      : loop_(loop), speaker_(make_gobgp_speaker(loop, target)) {
    speaker_->watch({.restarted =
                         [] {
                           print({{"news", "restarted"}});
                         },
                     .changed =
                         [] {
                           print({{"news", "changed"}});
                         },
                     .lost =
                         [](const Error& error) {
                           print({{"news", "lost"}, {"error", error.message}});
                         }});
  }

  void take(const std::string& line) {
    std::istringstream words(line);
    std::string what;
    words >> what;
    if (what == "identify") speaker_->identify(printer<BgpIdentity>());
    if (what == "peers") speaker_->list_peers(printer<std::vector<BgpPeer>>());
    if (what == "remove") speaker_->remove(address(words), printer<void>());
    if (what == "add") {
      std::uint32_t own_as = 0;
      words >> own_as;
      speaker_->add(announcement(words), own_as, printer<void>());
    }
    if (what == "rib") {
      const Family which = family(words);
      speaker_->list_rib(which, addresses(words), printer<std::vector<Announcement>>());
    }
    if (what == "sent") {
      const IpAddress peer = address(words);
      const Family which = family(words);
      speaker_->list_sent(peer, which, addresses(words), printer<std::vector<IpAddress>>());
    }
  }

  void end() {
    const Instant start = boot_now();
    speaker_.reset();
    print({{"destroyed", ms_since(start)}});
    loop_.call_after(milliseconds(300), "end", [this] { loop_.stop(); });
  }

 private:
  template <class T>
  BgpSpeaker::Answer<T> printer() {
    return [id = ++commands_, start = boot_now()](const Result<T>& result) {
      Json line = {{"id", id}, {"ms", ms_since(start)}, {"ok", result.has_value()}};
      if (!result) {
        line["code"] = result.error().code;
        line["error"] = result.error().message;
      } else if constexpr (!std::is_void_v<T>) {
        line["value"] = json_of(*result);
      }
      print(line);
    };
  }

  Loop& loop_;
  std::unique_ptr<BgpSpeaker> speaker_;
  int commands_ = 0;
};

int run(const std::string& target) {
  Loop loop;
  Driver driver(loop, target);
  LineBuffer lines(65536);
  loop.watch(0, EPOLLIN, "commands", [&](std::uint32_t) {
    char bytes[4096];
    const auto count = ::read(0, bytes, sizeof(bytes));
    if (count <= 0) {
      loop.unwatch(0);
      driver.end();
      return;
    }
    lines.append({bytes, static_cast<std::size_t>(count)});
    while (const auto line = lines.next()) driver.take(std::string(*line));
  });
  print({{"ready", true}});
  loop.run();
  return 0;
}

}  // namespace
}  // namespace holdfast

int main(int argc, char** argv) {
  spdlog::set_default_logger(spdlog::stderr_logger_mt("gobgp"));
  std::signal(SIGPIPE, SIG_IGN);
  if (argc != 2) {
    std::cerr << "usage: gobgp_under_test TARGET\n";
    return 2;
  }
  return holdfast::run(argv[1]);
}

// SPDX-License-Identifier: Apache-2.0
// The real control plane without a data plane: snapshots go nowhere and counters are what standard
// input says, so that the real CLI can be tested without root, DPDK or packets. A backend 192.0.2.N
// of the configuration is played by 127.0.0.N, which a configuration may not name, so that checks
// find somebody on any machine. Prints "ready", and each published snapshot as JSON. Input lines:
//   active NUMBER COUNT | embryonic NUMBER COUNT | new NUMBER COUNT    of backend NUMBER
//   drop REASON COUNT | received COUNT | forwarded COUNT               of worker 0
//   sample REASON WORKER LENGTH HEXADECIMAL       its latest packet, dropped now
//   heartbeat on|off | port up|down
//   flow WORKER SERVICE BACKEND STATE AGE IDLE    an entry in a flow table: numbers, embryonic|
//                                                 established|proven|closing, seconds
//   flows WORKER COUNT                            so many more, proven, of service 0 on backend 0
//   bgp kill|start|freeze|thaw                    the fake BGP speaker, if there is a [bgp]
//   bgp ignore|heed                               adds that are said to be done
//   bgp down|up                                   its session with 192.0.2.1
// Each change of the speaker's RIB is printed as {"rib": ["ADDRESS HEXADECIMAL-COMMUNITIES...",
// ...]}.
#include <fmt/format.h>
#include <net/if.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <fstream>
#include <iostream>
#include <mutex>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "ctrl/control_plane.h"
#include "lb/flow/flow_context.h"
#include "lb/flow/flow_scan.h"
#include "lb/flow/lookup.h"
#include "lib/config/seed_file.h"
#include "lib/protocol/json.h"
#include "tests/dsl/fake_speaker.h"

namespace holdfast {
namespace {

class FakeSink : public SnapshotSink {
 public:
  void publish(std::unique_ptr<const Snapshot> next) override {
    Json backends = Json::array();
    for (const auto& backend : next->backends) {
      Json hops = Json::array();
      for (std::size_t i = 0; i < backend.next_hop_count; ++i) {
        const auto& hop = next->next_hops[backend.first_next_hop + i];
        hops.push_back({{"port", index_of(hop.port)},
                        {"vlan", hop.vlan},
                        {"mtu", hop.mtu},
                        {"source", hop.source.text()},
                        {"destination", hop.destination.text()}});
      }
      backends.push_back({{"address", backend.address.text()},
                          {"state", name_of(backend.state)},
                          {"tunnel_source", backend.tunnel_source.text()},
                          {"next_hops", std::move(hops)}});
    }
    std::cout << to_line({{"generation", next->generation}, {"backends", std::move(backends)}})
              << std::endl;
    current_ = std::move(next);
  }
  void reclaim() override {}
  [[nodiscard]] const Snapshot& current() const { return *current_; }

 private:
  std::unique_ptr<const Snapshot> current_;
};

/// Two workers that see no packet: their flows come from the input. The control thread is the
/// owner.
class FakeFlows : public FlowQueries {
 public:
  explicit FakeFlows(const FakeSink& sink) : sink_(sink) {}
  [[nodiscard]] FlowAnswer look_up(const FlowQuestion& question) const override {
    return look_up_flow(question, sink_.current(), tables());
  }
  [[nodiscard]] std::optional<FlowPosition> read_flows(FlowPosition from, std::uint64_t places,
                                                       const FlowVisitor& visit) const override {
    return scan_flows(tables(), std::chrono::floor<FlowTime>(boot_now()), from, places, visit);
  }
  [[nodiscard]] StreamRecords read_streams(ServiceNumber service) const override {
    return workers_[0].counts.streams.read(service);
  }
  void take(const std::string& line) {
    std::istringstream words(line);
    std::string what;
    std::size_t worker = 0;
    std::uint16_t service = 0;
    std::uint16_t backend = 0;
    std::string state = "proven";
    std::int64_t age = 0;
    std::int64_t idle = 0;
    std::uint64_t count = 1;
    words >> what >> worker;
    if (what == "flows") words >> count;
    if (what == "flow") words >> service >> backend >> state >> age >> idle;
    FlowLife life{.state = FlowState::established};
    if (state == "embryonic") life.state = FlowState::embryonic;
    if (state == "closing") life.state = FlowState::closing_fin;
    if (state == "proven") life.proven = FlowLife::kProven;
    const auto now = std::chrono::floor<FlowTime>(boot_now());
    for (; count > 0; --count) {
      const FlowHash hash{.low64 = random_(), .high64 = random_()};
      auto entry = FlowEntry::make(flow_tag(hash), BackendNumber{backend}, ServiceNumber{service},
                                   life, false, now - std::chrono::seconds(age));
      entry.set_last_seen(now - std::chrono::seconds(idle));
      if (!workers_[worker].table.insert(hash, entry, sink_.current(), now))
        std::cerr << "no room for a flow\n";
    }
  }

 private:
  [[nodiscard]] std::array<const FlowTable*, 2> tables() const {
    return {&workers_[0].table, &workers_[1].table};
  }

  const FakeSink& sink_;
  FlowContext workers_[2];
  std::mt19937_64 random_{1};
};

class FakeStats : public StatsSource {
 public:
  FakeStats() {
    stats_.workers.push_back({.worker = 0, .cpu = 1});
    stats_.ports.push_back({.name = "p0", .up = true});
    stats_.workers[0].snapshot_generation = 1;
    stats_.steering.push_back({.port = "p0", .to_workers = 7, .to_kernel = 3});
    stats_.backends.resize(16);
    stats_.services.resize(16);
  }
  [[nodiscard]] DataPlaneStats read_stats() const override {
    const std::scoped_lock lock(mutex_);
    auto copy = stats_;
    if (beating_) copy.workers[0].heartbeat = static_cast<std::uint64_t>(boot_now().count());
    return copy;
  }
  [[nodiscard]] std::vector<DropSample> read_drop_samples() const override {
    const std::scoped_lock lock(mutex_);
    return samples_;
  }
  void take(const std::string& line) {
    const std::scoped_lock lock(mutex_);
    std::istringstream words(line);
    std::string what;
    std::string first;
    std::uint64_t count = 0;
    words >> what >> first >> count;
    if (what == "sample") return add_sample(reason_of(first), static_cast<unsigned>(count), words);
    auto& packets = stats_.workers[0].packets;
    const auto number = std::strtoul(first.c_str(), nullptr, 10);
    if (what == "active") stats_.backends.at(number).active = static_cast<std::int64_t>(count);
    if (what == "embryonic")
      stats_.backends.at(number).embryonic = static_cast<std::int64_t>(count);
    if (what == "new") stats_.backends.at(number).new_flows = count;
    if (what == "drop") packets.dropped.at(static_cast<std::size_t>(reason_of(first))) = count;
    if (what == "received") packets.received = number;
    if (what == "forwarded") packets.forwarded = packets.transmitted = number;
    if (what == "heartbeat") beating_ = first == "on";
    if (what == "port") stats_.ports[0].up = first == "up";
  }

 private:
  static DropReason reason_of(const std::string& name) {
    for (std::size_t i = 0; i < kDropReasonCount; ++i)
      if (kDropReasonTexts[i].name == name) return static_cast<DropReason>(i);
    throw std::invalid_argument("no drop reason " + name);
  }
  void add_sample(DropReason reason, unsigned worker, std::istringstream& words) {
    DropSample sample{.reason = reason, .worker = worker, .at = boot_now()};
    std::string head;
    words >> sample.length >> head;
    for (std::size_t i = 0; i < sample.kept(); ++i)
      sample.head.at(i) = static_cast<std::uint8_t>(std::stoul(head.substr(2 * i, 2), nullptr, 16));
    samples_.push_back(sample);
  }

  mutable std::mutex mutex_;
  DataPlaneStats stats_;
  std::vector<DropSample> samples_;
  bool beating_ = true;
};

std::string read_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::vector<PortDescription> describe(const Config& config) {
  std::vector<PortDescription> ports;
  for (const auto& port : config.dataplane.ports) {
    ports.push_back({.name = port.name,
                     .interface = port.interface,
                     .interface_index = if_nametoindex(port.interface.c_str()),
                     .mac = *MacAddress::parse("02:00:00:00:00:01"),
                     .mtu = 1500});
  }
  return ports;
}

/// 192.0.2.N (RFC 5737) -> 127.0.0.N.
void play_on_loopback(Config& config) {
  const auto documentation = Prefix::parse("192.0.2.0/24");
  for (auto& pool : config.pools) {
    for (auto& backend : pool.backends) {
      if (!documentation->contains(backend.address)) continue;
      const auto last = backend.address.bytes()[3];
      if (backend.name == backend.address.text()) backend.name = fmt::format("127.0.0.{}", last);
      backend.address = *IpAddress::parse(fmt::format("127.0.0.{}", last));
    }
  }
}

/// Control thread.
void command_speaker(FakeSpeaker& speaker, const std::string& what) {
  auto& model = speaker.model();
  if (what == "kill") speaker.kill();
  if (what == "start") speaker.start_again();
  if (what == "freeze") model.life = SpeakerModel::Life::hung;
  if (what == "thaw") model.life = SpeakerModel::Life::running;
  if (what == "ignore" || what == "heed") model.ignores_adds = what == "ignore";
  if (what == "down" || what == "up") speaker.establish(what == "up");
}

void print_rib(const SpeakerModel& model) {
  Json rib = Json::array();
  for (const auto& [vip, announcement] : model.rib) {
    std::string text = vip.text();
    for (const auto community : announcement.communities) text += fmt::format(" {:08x}", community);
    rib.push_back(std::move(text));
  }
  std::cout << to_line({{"rib", std::move(rib)}}) << std::endl;
}

int run(const std::string& path) {
  // Before the first thread, so that none takes the signal.
  sigset_t terminate;
  sigemptyset(&terminate);
  sigaddset(&terminate, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &terminate, nullptr);
  const UniqueFd signals(::signalfd(-1, &terminate, SFD_CLOEXEC | SFD_NONBLOCK));

  auto parsed = parse_config(read_file(path), path);
  for (const auto& fault : parsed.faults) std::cerr << fault.text() << "\n";
  if (!parsed.ok()) return 1;
  play_on_loopback(parsed.config);
  const auto seed = read_seed(parsed.config.dataplane.hash_seed_file);
  if (!seed) {
    std::cerr << seed.error().text() << "\n";
    return 1;
  }
  FakeSink sink;
  FakeStats stats;
  FakeFlows flows(sink);
  auto ports = describe(parsed.config);
  FakeSpeaker* speaker = nullptr;
  auto control =
      ControlPlane::start(std::move(parsed.config), *seed, sink, stats, flows, std::move(ports),
                          [&speaker](Loop& loop, const std::string&) {
                            auto made = std::make_unique<FakeSpeaker>(loop, print_rib);
                            made->model().connect({.address = *IpAddress::parse("192.0.2.1"),
                                                   .as = 64513,
                                                   .established = true,
                                                   .ipv4 = true,
                                                   .ipv6 = true});
                            speaker = made.get();
                            return made;
                          });
  if (!control) {
    std::cerr << control.error().text() << "\n";
    return 1;
  }
  (*control)->loop().watch(signals.get(), EPOLLIN, "signals", [&](std::uint32_t) {
    signalfd_siginfo signal{};
    while (::read(signals.get(), &signal, sizeof signal) == sizeof signal)
      (*control)->stop_in_order();
  });
  std::thread input([&] {
    std::string line;
    while (std::getline(std::cin, line)) {
      stats.take(line);
      if (line.starts_with("flow")) (*control)->loop().post([&flows, line] { flows.take(line); });
      if (line.starts_with("bgp ") && speaker != nullptr)
        (*control)->loop().post(
            [speaker, what = line.substr(4)] { command_speaker(*speaker, what); });
    }
  });
  std::cout << "ready" << std::endl;
  (*control)->run();
  control->reset();
  input.detach();  // it sits in getline until the test closes its end
  std::quick_exit(0);
}

}  // namespace
}  // namespace holdfast

int main(int argc, char** argv) {
  spdlog::set_default_logger(spdlog::stderr_logger_mt("control"));
  if (argc != 2) {
    std::cerr << "usage: control_under_test CONFIG\n";
    return 2;
  }
  return holdfast::run(argv[1]);
}

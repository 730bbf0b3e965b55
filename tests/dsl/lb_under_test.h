// SPDX-License-Identifier: Apache-2.0
// A whole worker without EAL: services in, packets in, packets out. After every burst the counter
// identity, the whereabouts of every buffer and the order on each port are checked;
// std::logic_error when they are wrong.
//
//   LbUnderTest lb{service("203.0.113.10", tcp(80)).to("192.0.2.21")};
//   lb.handle(Eth{} / syn)  ==  sent(from_lb / Ip4{.src = "192.0.2.1", .dst = "192.0.2.21"} / syn)
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "lb/burst.h"
#include "lb/burst_witness.h"
#include "lb/flow/flow_context.h"
#include "lb/worker.h"
#include "lb/worker_counters.h"
#include "tests/dsl/packet.h"
#include "tests/dsl/services.h"
#include "tests/dsl/test_io.h"

namespace holdfast::dsl {

/// What became of one packet.
struct Handled {
  enum class Kind : std::uint8_t { sent, answered, to_kernel, dropped, held };
  Kind kind = Kind::dropped;
  Bytes frame{};  // that left, or was given to the kernel
  PortNumber port = kNoPort;
  DropReason reason{};
  std::vector<Bytes> more{};  // frames that left right behind: further fragments of it
};
[[nodiscard]] Handled sent(const Packet& packet, std::uint8_t port = 0);
/// Turned into an answer to its sender.
[[nodiscard]] Handled answered(const Packet& packet, std::uint8_t port = 0);
/// Given to the kernel as it is here.
[[nodiscard]] Handled to_kernel(const Packet& packet);
[[nodiscard]] Handled dropped(DropReason reason);
/// A fragment that waits for its first one.
[[nodiscard]] Handled held();

class LbUnderTest {
 public:
  struct Options {
    std::uint32_t icmp_relay_rate = 1000;
    std::uint32_t icmp_answer_rate = 1000;
    FlowOptions flows{.capacity = 10'000};
  };

  explicit LbUnderTest(std::vector<ServiceSpec> services, Options options);
  explicit LbUnderTest(ServiceSpec service) : LbUnderTest({std::move(service)}, Options{}) {}
  LbUnderTest(std::initializer_list<ServiceSpec> services) : LbUnderTest(services, Options{}) {}
  LbUnderTest(ServiceSpec service, Options options)
      : LbUnderTest(std::vector{std::move(service)}, options) {}

  Handled handle(const Packet& packet, const MbufShape& shape = {}) {
    return handle(packet.bytes(), shape);
  }
  Handled handle(std::span<const std::uint8_t> frame, const MbufShape& shape = {});
  /// All at once, in bursts of at most Burst::kCapacity.
  std::vector<Handled> handle_all(const std::vector<Packet>& packets);
  /// One poll that receives nothing.
  void idle() { static_cast<void>(handle_pushed(0, 0)); }
  /// What became of packets that earlier calls had called held, in order of departure.
  [[nodiscard]] std::vector<Handled> take_released();
  /// The same with the frames as they came in.
  struct Released {
    Handled handled;
    Bytes came_as;
  };
  [[nodiscard]] std::vector<Released> take_released_frames() {
    return std::exchange(released_, {});
  }

  /// Handles what io.push() has queued, whatever becomes of it.
  void drain_queue();

  /// Time stands still but for this.
  void pass(std::chrono::nanoseconds duration) { time += duration; }
  /// To be changed at will; then publish().
  [[nodiscard]] BackendSpec& backend(Ip address);
  [[nodiscard]] ServiceSpec& service(std::size_t index) { return services_.at(index); }
  void publish();

  [[nodiscard]] const Snapshot& snapshot() const { return *snapshot_; }
  [[nodiscard]] PacketCounters counters() const { return counters_->read(); }
  [[nodiscard]] std::uint64_t dropped_for(DropReason reason) const {
    return counters().dropped[static_cast<std::size_t>(reason)];
  }

  [[nodiscard]] std::optional<DropSample> drop_sample(DropReason reason) const {
    return counters_->drop_samples.read(reason);
  }

  [[nodiscard]] BackendNumber number_of(Ip backend) const;
  [[nodiscard]] FlowCounters counters_of_backend(Ip address) const {
    return flows.backend_counters(number_of(address));
  }
  [[nodiscard]] FlowCounters counters_of_service(std::size_t index) const {
    return flows.service_counters(static_cast<ServiceNumber>(index));
  }

  Instant time = std::chrono::hours(1);
  TestIo io{};
  FlowContext flows;

 private:
  /// Remembers the verdict on each packet.
  class Verdicts : public BurstWitness {
   public:
    explicit Verdicts(const TestIo& io) : io_(io) {}
    void see(const Burst& burst) noexcept override;
    std::map<std::size_t, Verdict> of{};  // by arrival
    std::set<std::size_t> held{};         // that were held once

   private:
    const TestIo& io_;
  };

  std::vector<TestIo::Fate> run_burst();
  struct Departure {
    std::size_t arrival;
    Handled handled;
  };
  std::vector<Departure> poll();
  std::vector<Handled> handle_pushed(std::size_t first, std::size_t count);
  Bytes frame_of_held(std::size_t arrival);

  std::vector<ServiceSpec> services_;
  std::unique_ptr<const Snapshot> snapshot_;
  std::unique_ptr<WorkerCounters> counters_ = std::make_unique<WorkerCounters>();
  Verdicts verdicts_{io};
  Worker worker_;
  std::map<std::size_t, Bytes> held_frames_{};  // by arrival
  std::vector<Released> released_{};
};

}  // namespace holdfast::dsl
